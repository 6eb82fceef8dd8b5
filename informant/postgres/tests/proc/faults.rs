//! PostgreSQL stopped, slow, full, killed in the middle, changed by somebody else: less memory
//! is refused, or agreed to with all that belongs to it; the cache is never left half way.

use crate::scene::Scene;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use windlass_testkit::http::Answer;
use windlass_testkit::wait::until;

#[test]
fn stopped_it_refuses_and_when_it_is_back_it_agrees() {
    let mut scene = Scene::start();
    scene.wait_for_cache(3034);
    scene.server.stop();
    refused(&shrink(&scene), "PostgreSQL cannot be reached: ");
    assert_eq!(scene.metric("up"), Some(0.0));
    assert!(scene.metric("consents_total{result=\"failed\"}").unwrap() >= 1.0);
    // What the VM has it may keep, whatever PostgreSQL does: a vCPU can go.
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "5Gi");
    assert!(answer.body.starts_with(r#"{"Ok":true"#), "{}", answer.body);

    scene.server.boot(&[]);
    until("back", || scene.metric("up") == Some(1.0));
    assert_eq!(scene.server.setting(), "3034MB");
    agreed(&scene);
}

#[test]
fn slow_it_refuses_in_time_and_nothing_is_left_half_way() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    scene.server.freeze();
    let began = Instant::now();
    let answer = shrink(&scene);
    let took = began.elapsed();
    refused(&answer, "PostgreSQL did not answer within 800ms");
    // An agent waits two seconds.
    assert!(took < Duration::from_millis(1900), "it took {took:?}");
    scene.server.thaw();
    until("back", || scene.metric("up") == Some(1.0));
    // What the server did meanwhile, late, is taken back.
    until("restored", || scene.server.setting() == "3034MB");
    scene.settle();
    scene.wait_for_cache(3034);
    agreed(&scene);
}

#[test]
fn a_full_disk_refuses_and_the_size_stays() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    scene.server.fill_disk();
    refused(&shrink(&scene), "PostgreSQL refused: could not write to file");
    assert_eq!(scene.server.setting(), "3034MB");
    assert!(scene.metric("sets_total{result=\"failed\"}").unwrap() >= 1.0);
    until("back", || scene.metric("up") == Some(1.0));
    scene.wait_for_cache(3034);
    agreed(&scene);
}

#[test]
fn settings_that_cannot_be_written_refuse_and_the_size_stays() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    scene.server.writable(false);
    refused(&shrink(&scene), "PostgreSQL refused: could not open file");
    assert_eq!(scene.server.setting(), "3034MB");
    scene.server.writable(true);
    until("back", || scene.metric("up") == Some(1.0));
    agreed(&scene);
}

#[test]
fn killed_in_the_middle_and_restarted_with_another_size_it_gets_the_right_one() {
    let mut scene = Scene::start();
    scene.wait_for_cache(3034);
    scene.server.freeze();
    let asking = {
        let (addr, body) = (scene.program.addr, scene.body(1, "2Gi"));
        std::thread::spawn(move || crate::support::program::ask(addr, "PUT", "/downscale", &body))
    };
    std::thread::sleep(Duration::from_millis(300));
    scene.server.kill();
    refused(&asking.join().unwrap(), "PostgreSQL ");
    let file = scene.server.data().join("postgresql.auto.conf");
    std::fs::write(file, "neon.file_cache_size_limit = '9000MB'\n").unwrap();
    scene.server.boot(&[]);
    until("set right", || scene.server.setting() == "3034MB");
    until("back", || scene.metric("up") == Some(1.0));
    agreed(&scene);
    // Also after an agreement, with the size of the agreement.
    scene.server.kill();
    let file = scene.server.data().join("postgresql.auto.conf");
    std::fs::write(file, "neon.file_cache_size_limit = '9000MB'\n").unwrap();
    scene.server.boot(&[]);
    until("set right", || scene.server.setting() == "1234MB");
}

#[test]
fn a_size_that_does_not_come_into_effect_refuses() {
    let mut scene = Scene::start();
    scene.wait_for_cache(3034);
    scene.server.stop();
    // What the command line says no file can change.
    scene.server.boot(&["-c", "neon.file_cache_size_limit=3034MB"]);
    until("back", || scene.metric("up") == Some(1.0));
    refused(&shrink(&scene), "PostgreSQL was told of a file cache of 1.21GiB, and still has ");
    assert_eq!(scene.metric("up"), Some(0.0));
    until("restored", || scene.server.configuration().0.contains("'3034MB'"));
}

#[test]
fn an_agent_that_hangs_up_in_the_middle_leaves_the_cache_as_it_was() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    // The content does not go: the consent waits for it.
    scene.server.freeze();
    let body = scene.body(1, "2Gi");
    let head =
        format!("PUT /downscale HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut stream = TcpStream::connect(scene.program.addr).unwrap();
    stream.write_all((head + &body).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    drop(stream);
    scene.server.thaw();
    scene.settle();
    until("restored", || scene.server.setting() == "3034MB");
    scene.wait_for_cache(3034);
    assert_eq!(scene.metric("consents_total{result=\"agreed\"}"), Some(0.0));
}

fn shrink(scene: &Scene) -> Answer {
    scene.agent.resize(&scene.program, "/downscale", "1", "2Gi")
}

fn refused(answer: &Answer, why: &str) {
    let start = format!(r#"{{"Ok":false,"Status":"{why}"#);
    assert!(answer.status == 200 && answer.body.starts_with(&start), "{}", answer.body);
}

/// It is agreed to before long, and the cache is small by then.
fn agreed(scene: &Scene) {
    until("agreed", || shrink(scene).body.starts_with(r#"{"Ok":true"#));
    assert_eq!(scene.server.setting(), "1234MB");
}
