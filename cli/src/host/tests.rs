//! A host among VMs and disks that hang, and people who order all the same.

mod chance;
mod orders;
mod stage;

use crate::explain::instant;
use stage::{FakeDisk, Stage, Vms, wait};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::Ordering;
use std::time::Duration;
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

/// In ordinary cases an order is answered within this.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_kernel_that_refuses_to_watch_is_said_once_and_files_are_followed_by_looks() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    disk.papers().refuses_to_watch = true;
    let stage = Stage::start(&disk, &vms).await;
    wait(2).await;
    assert_eq!(stage.problems().await, ["vms_dir"]);
    vms.add(&disk, "db1");
    wait(3).await;
    assert!(stage.is_seen("db1").await);
    wait(60).await;
    assert_eq!(stage.problems().await, ["vms_dir"], "said once");
    disk.papers().refuses_to_watch = false;
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn vms_without_a_call_back_port_are_said_until_they_have_one() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    vms.add(&disk, "db2");
    let port = free_port();
    let stage = Stage::with_ports(&disk, &vms, port..=port).await;
    wait(4).await;
    let problems = stage.get("/v1/problems").await;
    let said = problems[0]["problems"][0]["limit"].as_str().unwrap();
    assert_eq!(stage.problems().await, ["callback_ports"]);
    assert!(said.starts_with("no port could be had for db2: each is another VM's, or "), "{said}");
    vms.get("db1").fake.end();
    disk.papers().files.remove("db1");
    wait(120).await;
    assert_eq!(stage.problems().await, [""; 0]);
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pauses_and_edits_in_a_row_are_answered_over_one_connection() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    let stage = Stage::start(&disk, &vms).await;
    wait(2).await;
    for nth in 0..10 {
        let (status, answer, took) = stage.pause("db1").await;
        assert!(status == 200 && took < SOON, "{nth}: {status} {answer} after {took:?}");
        stage.disk.put("db1", &format!("priority = {nth}"));
        wait(2).await;
        let (status, answer) = stage.ask("POST", "/v1/vm/db1/resume", "").await;
        assert_eq!(status, 200, "{answer}");
        stage.disk.put("db1", &format!("priority = {nth}\nload_window = \"5s\""));
        wait(2).await;
        let state = stage.get("/v1/state").await;
        let (followed, booked) = (&state["vms"][0], &state["node"]["vms"][0]);
        assert_eq!(followed["priority"], nth, "files are followed");
        assert_eq!(booked["priority"], nth, "the books know");
    }
    assert_eq!(vms.get("db1").attached.load(Ordering::Relaxed), 1);
    let until = instant(stage.clock.now().after(Duration::from_secs(60)));
    let body = format!("{{\"until\":\"{until}\"}}");
    assert_eq!(stage.ask("POST", "/v1/vm/db1/pause", &body).await.0, 200);
    assert!(stage.get("/v1/vms").await[0]["paused_until"].is_u64(), "a pause that is not over");
    wait(61).await;
    assert!(stage.get("/v1/vms").await[0]["paused_until"].is_null(), "a pause that is over");
    wait(2).await;
    assert!(disk.papers().state.as_ref().unwrap().pauses.is_empty(), "is not kept");
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_says_nothing_is_the_problem_of_its_own_vm() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let silent = vms.add(&disk, "silent");
    vms.add(&disk, "good");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    assert!(stage.is_seen("silent").await && stage.is_seen("good").await);
    stage.end().await.unwrap();
    silent.hold();
    // The next start finds a hypervisor that accepts, and says nothing.
    let mut stage = Stage::prepare(&disk, &vms);
    let asked = stage.clock.now();
    stage.run().await.unwrap();
    assert!(stage.clock.now().since(asked) < SOON, "it begins all the same");
    // What it had may be promised to no other, from the first moment on and for good.
    assert_eq!(stage.booked("silent").await, Some(4));
    wait(5).await;
    assert!(stage.is_seen("good").await && !stage.is_seen("silent").await);
    for _ in 0..3 {
        let (status, answer, took) = stage.pause("silent").await;
        assert!(status == 200 && took < SOON, "{answer} after {took:?}");
    }
    wait(120).await;
    assert_eq!((stage.booked("silent").await, stage.booked("good").await), (Some(4), Some(1)));
    assert_eq!(stage.watchdog.hanging(), []);
    let stopped = stage.clock.now();
    let clock = stage.clock;
    stage.end().await.unwrap();
    assert!(clock.now().since(stopped) < Duration::from_secs(8));
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_may_be_there_counts_until_it_was_looked_for() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let ended = vms.add(&disk, "ended");
    vms.add(&disk, "removed");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    stage.end().await.unwrap();
    ended.end();
    disk.papers().files.remove("removed");
    vms.get("removed").fake.hold();
    let new = vms.absent(&disk, "new");
    // What was written down may be older than this file.
    let larger = disk.papers().files["ended"].replace("cpu = 4\n", "cpu = 6\n");
    disk.papers().files.insert("ended".to_owned(), larger);
    let stage = Stage::start(&disk, &vms).await;
    assert_eq!((stage.booked("ended").await, stage.booked("new").await), (Some(6), Some(4)));
    assert_eq!(stage.booked("removed").await, Some(1));
    wait(3).await;
    assert_eq!((stage.booked("ended").await, stage.booked("new").await), (None, None));
    assert_eq!(stage.booked("removed").await, Some(1), "its monitor says nothing");
    // An edit of a VM that is not there takes no room from others.
    stage.disk.put("new", "priority = 7");
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(stage.booked("new").await, None);
    }
    new.set_taken(false);
    wait(5).await;
    assert_eq!(stage.booked("new").await, Some(1));
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_keeps_no_order_waiting() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    for kind in ["save", "history", "look"] {
        disk.hold(kind);
    }
    let (status, answer, took) = stage.pause("db1").await;
    assert!(status == 500 && took < SOON, "{status} {answer} after {took:?}");
    let words = answer["message"].as_str().unwrap();
    assert!(words.contains("the disk does not answer") && words.starts_with("done, "), "{words}");
    let paused = |vms: serde_json::Value| !vms[0]["paused_until"].is_null();
    assert!(paused(stage.get("/v1/vms").await), "it is done");
    wait(60).await;
    assert_eq!(stage.problems().await, ["state", "/etc/windlass/vms.d"]);
    assert_eq!((stage.watchdog.hanging(), disk.papers().busiest), (vec![], 1));
    for kind in ["save", "history", "look"] {
        disk.let_go(kind);
    }
    wait(3).await;
    assert_eq!(stage.problems().await, Vec::<String>::new());
    assert!(disk.papers().state.as_ref().unwrap().pauses.contains_key("db1"));
    disk.hold("save");
    stage.ask("POST", "/v1/vm/db1/resume", "").await;
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn orders_that_come_together_are_written_down_together() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    for name in ["a", "b", "c", "d"] {
        vms.add(&disk, name);
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    disk.hold("save");
    let before = disk.papers().saves;
    let slow = async {
        wait(2).await;
        assert_eq!(disk.papers().saves, before);
        disk.let_go("save");
    };
    let (a, b, c, d, ()) =
        tokio::join!(stage.pause("a"), stage.pause("b"), stage.pause("c"), stage.pause("d"), slow);
    for (status, answer, took) in [a, b, c, d] {
        // At once after the disk came back, and not at the next round.
        assert!(status == 200 && took < Duration::from_millis(2_100), "{answer} after {took:?}");
    }
    let papers = disk.papers();
    assert!(papers.saves <= before + 2 && papers.busiest == 1, "{}", papers.saves - before);
    assert_eq!(papers.state.as_ref().unwrap().pauses.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_said_once_and_tried_again() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    disk.papers().is_full = true;
    let stage = Stage::start(&disk, &vms).await;
    wait(10).await;
    assert!(stage.is_seen("db1").await, "it follows its load");
    assert!(stage.problems().await.contains(&"state".to_owned()));
    let (status, answer, _) = stage.pause("db1").await;
    assert_eq!((status, answer["code"].as_str()), (500, Some("not-kept")));
    let saves = disk.papers().saves;
    assert!((4..20).contains(&saves), "{saves}");
    disk.papers().is_full = false;
    wait(3).await;
    assert_eq!(stage.problems().await, Vec::<String>::new());
    assert!(disk.papers().state.as_ref().unwrap().pauses.contains_key("db1"));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_was_answered_not_done_takes_no_effect_later() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    let mut stage = Stage::prepare(&disk, &vms);
    let (status, answer, took) = stage.pause("db1").await;
    assert_eq!(status, 503, "{answer}");
    assert!(answer["message"].as_str().unwrap().starts_with("not done: "), "{answer}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    stage.run().await.unwrap();
    wait(30).await;
    assert!(stage.get("/v1/vms").await[0]["paused_until"].is_null());
    assert!(disk.papers().state.as_ref().unwrap().pauses.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_given_up_says_what_its_own_vm_waited_for() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    for vm in ["stuck", "first"] {
        vms.add(&disk, vm);
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    let (status, answer) = stage.ask("POST", "/v1/vm/stuck/release", "{\"cpu\":2000}").await;
    assert_eq!(status, 200, "{answer}");
    wait(660).await;
    let release = stage.get("/v1/vm/stuck/release").await;
    let why = release["why"].as_str().unwrap();
    assert!(why.contains("no informant in the guest"), "{why}");
    stage.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_happened_to_a_vm_is_written_down_once_and_after_a_full_disk() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let names = ["db1", "db2"].map(VmName::on_host);
    for vm in &names {
        vms.add(&disk, &vm.name);
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    let much = Resources::new(MilliCpu::from_cores(90), Bytes::from_gib(1));
    let written =
        || -> Vec<String> { disk.papers().history.iter().map(|line| line.vm.clone()).collect() };
    for (vm, is_full, lines) in [
        (&names[0], false, &["db1"][..]),
        (&names[1], true, &["db1"]),
        (&names[1], false, &["db1", "db2"]),
    ] {
        disk.papers().is_full = is_full;
        // It is granted less than it asks for.
        stage.books.with_books(|books| books.request(stage.clock.now(), vm, much)).unwrap();
        wait(10).await;
        assert_eq!(written(), lines, "{vm}, full: {is_full}");
    }
    // What happened last is written as the host ends.
    let more = Resources::new(MilliCpu::from_cores(91), Bytes::from_gib(1));
    stage.books.with_books(|books| books.request(stage.clock.now(), &names[0], more)).unwrap();
    stage.end().await.unwrap();
    assert_eq!(written(), ["db1", "db2", "db1"]);
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_does_not_answer_at_the_start_removes_no_vm_and_takes_none_back() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    for name in ["managed", "released"] {
        vms.add(&disk, name);
    }
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    assert_eq!(stage.ask("POST", "/v1/vm/released/release", "{}").await.0, 200);
    wait(5).await;
    stage.end().await.unwrap();
    disk.hold("look");
    let mut stage = Stage::prepare(&disk, &vms);
    let asked = stage.clock.now();
    stage.run().await.unwrap();
    assert!(stage.clock.now().since(asked) < Duration::from_secs(8));
    wait(5).await;
    let booked = (stage.booked("managed").await, stage.booked("released").await);
    assert_eq!(booked, (Some(1), Some(1)));
    assert_eq!(stage.problems().await, ["/etc/windlass/vms.d"]);
    disk.let_go("look");
    wait(5).await;
    let states: Vec<_> = stage
        .get("/v1/vms")
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|vm| vm["state"].clone())
        .collect();
    assert_eq!(states, ["managed", "released"]);
    let release = stage.get("/v1/vm/released/release").await;
    assert_eq!(release["state"], "given-up");
    assert!(release["why"].as_str().unwrap().contains("was started anew since"), "{release}");
}

#[tokio::test(start_paused = true)]
async fn a_released_vm_whose_file_went_while_the_folder_did_not_answer_is_forgotten_with_its_end() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    let vm = vms.add(&disk, "released");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    assert_eq!(stage.ask("POST", "/v1/vm/released/release", "{}").await.0, 200);
    wait(5).await;
    stage.end().await.unwrap();
    disk.hold("look");
    let mut stage = Stage::prepare(&disk, &vms);
    stage.run().await.unwrap();
    disk.papers().files.remove("released");
    disk.let_go("look");
    wait(5).await;
    assert_eq!(stage.booked("released").await, Some(1), "it is there");
    vm.end();
    wait(15).await;
    assert_eq!(stage.get("/v1/vms").await.as_array().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_ends_before_it_began_keeps_what_it_knew() {
    let (disk, vms) = (FakeDisk::default(), Vms::default());
    vms.add(&disk, "db1");
    let stage = Stage::start(&disk, &vms).await;
    wait(5).await;
    stage.end().await.unwrap();
    disk.hold("look");
    let mut stage = Stage::prepare(&disk, &vms);
    let begun = stage.run();
    wait(1).await;
    stage.end().await.unwrap();
    assert!(begun.await.is_err(), "it was never ready");
    assert!(disk.papers().state.as_ref().unwrap().vms.contains_key("db1"));
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
