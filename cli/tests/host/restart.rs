//! What a host knows after it ended, in order or not.

use crate::support::{Host, until, vm_file};
use std::fs;
use windlass_testkit::qmp::Machine;

#[test]
fn freeze_pauses_and_ports_survive_a_crash() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    host.say(&["freeze"]);
    host.say(&["pause", "a", "--for", "2h"]);
    let port = || {
        let text = fs::read_to_string(host.path("state/state.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["ports"]["a"].as_u64()
    };
    until("its port is kept", || port().is_some());
    let before = port();
    host.kill();
    host.run();
    assert_eq!(host.state()["frozen"], true);
    until("a is booked", || host.booked("a").is_some());
    assert!(host.say(&["vm", "list"]).contains("202"), "paused until a date");
    let text = fs::read_to_string(host.path("state/state.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["ports"]["a"].as_u64(),
        before
    );
}

#[test]
fn a_vm_counts_from_the_first_moment_after_a_restart() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 512);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a") == Some((2, 768)));
    until("its size is kept", || size_is_kept(&host));
    host.kill();
    host.run();
    // Not until: the first answer has it, or its maximum. What was written down may be old.
    let first = host.booked("a");
    assert!(first.is_some_and(|(cpu, mib)| cpu >= 2 && mib >= 768), "{first:?}");
    until("a is seen", || host.booked("a") == Some((2, 768)));
}

#[test]
fn a_vm_counts_with_its_largest_maximum_until_it_is_seen_again() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 512);
    let file = vm_file(machine.path(), "127.0.0.71:1");
    host.put("a", &file);
    until("a is booked", || host.booked("a") == Some((2, 768)));
    until("its size is kept", || size_is_kept(&host));
    host.kill();
    drop(machine);
    // Somebody answers the connection, and says nothing.
    let silent = std::os::unix::net::UnixListener::bind(host.path("a.sock")).unwrap();
    host.put("a", &file.replace("memory = \"1GiB\"", "memory = \"512MiB\""));
    host.run();
    assert_eq!(host.booked("a"), Some((4, 1024)));
    drop(silent);
}

#[test]
fn a_vm_whose_file_went_while_nobody_looked_counts_until_it_ends() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 512);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a") == Some((2, 768)));
    until("its size is kept", || size_is_kept(&host));
    assert_eq!(host.stop(), Some(0));
    assert!(!host.path("host.sock").exists());
    fs::remove_file(host.path("vms.d/a.toml")).unwrap();
    host.run();
    assert_eq!(host.booked("a"), Some((2, 768)));
    assert!(host.say(&["vm", "list"]).contains("removed"));
    drop(machine);
    until("a is forgotten", || host.booked("a").is_none());
}

#[test]
fn a_released_vm_stays_released_and_a_vm_that_ended_meanwhile_does_not_count() {
    let mut host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    // Without it, it would count with its maximum after the crash.
    until("its size is kept", || size_is_kept(&host));
    host.say(&["vm", "release", "a"]);
    host.kill();
    host.run();
    assert!(host.say(&["vm", "list"]).contains("released"));
    assert_eq!(host.booked("a"), Some((2, 256)));
    host.kill();
    drop(machine);
    host.run();
    until("nothing counts", || host.booked("a").is_none());
}

#[test]
fn a_broken_state_freezes_the_host_and_is_said() {
    let mut host = Host::prepare();
    fs::create_dir_all(host.path("state/history")).unwrap();
    fs::write(host.path("state/state.json"), "{\"version\":1,\"fro").unwrap();
    fs::write(host.path("state/history/a.jsonl"), "{\"decision\":{\"at\":1").unwrap();
    host.run();
    assert_eq!(host.state()["frozen"], true);
    let said = host.say(&["top"]);
    assert!(said.contains("state.json: not understood"), "{said}");
    assert!(said.contains("1 lines were not understood"), "{said}");
    assert!(host.path("state/state.json.broken").exists());
    host.say(&["thaw"]);
    assert_eq!(host.state()["frozen"], false);
    assert!(!host.say(&["top"]).contains("state.json"));
}

fn size_is_kept(host: &Host) -> bool {
    fs::read_to_string(host.path("state/state.json")).unwrap().contains("\"size\": {")
}
