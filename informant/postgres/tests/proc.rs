//! The program with a real PostgreSQL, which stops, hangs, is killed, is full or is changed by
//! somebody else; the guest's memory is a directory that looks like procfs.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "proc/faults.rs"]
mod faults;
#[path = "proc/scene.rs"]
mod scene;
#[path = "proc/server.rs"]
mod server;
#[path = "../../tests/proc/support.rs"]
#[expect(dead_code, reason = "shared with the plain informant's tests, which use more of it")]
mod support;

use scene::Scene;
use std::time::Duration;
use windlass_testkit::wait::until;

#[test]
fn the_cache_follows_the_memory_that_is_there() {
    let scene = Scene::start();
    // 4,046 MiB usable: three quarters.
    scene.wait_for_cache(3034);
    assert_eq!(scene.metric("wanted_bytes"), Some(3034.0 * 1_048_576.0));
    assert_eq!(scene.metric("up"), Some(1.0));

    // Less memory is agreed to only when the cache is smaller.
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "2Gi");
    assert!(
        answer.body.starts_with(r#"{"Ok":true,"Status":"beside a file cache of 1.21GiB: 300MiB"#),
        "{}",
        answer.body
    );
    assert_eq!(scene.server.setting(), "1234MB");
    assert_eq!(scene.metric("consents_total{result=\"agreed\"}"), Some(1.0));

    // The memory goes, and comes back: word of it comes before it is all there.
    scene.memory.set_total(1998);
    let answer = scene.agent.resize(&scene.program, "/upscale", "1", "4Gi");
    assert_eq!(answer.status, 200);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(scene.server.setting(), "1234MB", "the memory is not there yet");
    scene.memory.set_total(4046);
    scene.wait_for_cache(3034);
}

#[test]
fn what_does_not_fit_is_refused_and_the_cache_is_not_touched() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    let before = scene.server.configuration();
    scene.memory.set_beside(700);
    scene.settle();
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "2Gi");
    assert!(
        answer.body.starts_with(
            r#"{"Ok":false,"Status":"700MiB in use beside a file cache of 1.21GiB, and "#
        ),
        "{}",
        answer.body
    );
    assert_eq!(scene.server.configuration(), before);
    assert_eq!(scene.metric("consents_total{result=\"declined\"}"), Some(1.0));
}

#[test]
fn an_agent_that_does_not_count_is_refused_before_the_cache_is_touched() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    let before = scene.server.configuration();
    // Another agent counts by now.
    let successor = support::agent::Agent::start(2);
    successor.take_over(&scene.program);
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "2Gi");
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert_eq!(scene.server.configuration(), before);
}

#[test]
fn a_request_said_twice_is_answered_twice_and_done_once() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    let body = scene.body(1, "2Gi");
    let first = scene.program.ask("PUT", "/downscale", &body);
    let second = scene.program.ask("PUT", "/downscale", &body);
    assert!(first.body.starts_with(r#"{"Ok":true"#), "{}", first.body);
    assert_eq!(first.body, second.body);
    let sets = scene.metric("sets_total{result=\"done\"}");
    assert_eq!(sets, Some(2.0), "one at the start, one for the consent");
}

#[test]
fn a_restart_of_the_informant_does_not_grow_the_cache_back() {
    let mut scene = Scene::start();
    scene.wait_for_cache(3034);
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "2Gi");
    assert!(answer.body.starts_with(r#"{"Ok":true"#), "{}", answer.body);
    // The memory is still there when the next informant starts.
    scene.restart();
    until("set", || scene.metric("sets_total{result=\"done\"}") == Some(1.0));
    scene.settle();
    assert_eq!(scene.server.setting(), "1234MB");
    let answer = scene.agent.resize(&scene.program, "/upscale", "1", "4Gi");
    assert_eq!(answer.status, 200);
    scene.wait_for_cache(3034);
}

#[test]
fn a_cache_on_disk_counts_as_nothing_and_its_size_follows() {
    let scene = Scene::start_with(&["--cache-used-query", ""]);
    scene.wait_for_cache(3034);
    scene.memory.set_full(0);
    scene.settle();
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "2Gi");
    assert!(answer.body.starts_with(r#"{"Ok":true,"Status":"beside a file"#), "{}", answer.body);
    assert_eq!(scene.server.setting(), "1234MB");
    assert_eq!(scene.metric("used_bytes"), None);
}

#[test]
fn a_query_that_fails_makes_the_content_count_as_in_use() {
    // Neon's extension is not there.
    let scene = Scene::start_with(&[
        "--cache-used-query",
        "SELECT file_cache_used * 1048576 FROM neon_stat_file_cache",
    ]);
    scene.wait_for_cache(3034);
    scene.memory.set_full(2000);
    scene.settle();
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "2Gi");
    assert!(
        answer.body.starts_with(r#"{"Ok":false,"Status":"2.25GiB in use, and "#),
        "{}",
        answer.body
    );
    let answer = scene.agent.resize(&scene.program, "/downscale", "1", "3Gi");
    assert!(answer.body.starts_with(r#"{"Ok":true"#), "{}", answer.body);
}

#[test]
fn agents_see_the_content_as_memory_that_can_be_had() {
    let scene = Scene::start();
    scene.wait_for_cache(3034);
    let available = || scene.program.metric("windlass_memory_available_bytes");
    // 4,046 MiB less the 300 MiB beside the cache, whose content is 200 MiB.
    until("counted", || available() == Some(3746.0 * 1_048_576.0));
}
