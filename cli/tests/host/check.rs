//! What is said of a VM whose monitor cannot be used.

use crate::support::{Host, informant, until, vm_file};
use std::os::unix::net::UnixListener;
use windlass_testkit::qmp::Machine;

#[test]
fn a_monitor_that_another_client_has_is_named_with_what_to_do() {
    let host = Host::start();
    // It accepts, as the kernel does for a busy monitor, and never greets.
    let _taken = UnixListener::bind(host.path("a.sock")).unwrap();
    host.put("a", &vm_file(&host.path("a.sock"), "127.0.0.71:1"));
    until("the cause is named", || checked(&host).1.contains("does not answer"));
    let (code, said) = checked(&host);
    assert_eq!(code, Some(1), "{said}");
    let path = host.path("a.sock").display().to_string();
    assert!(said.contains(&path) && said.contains("blocked  monitor"), "{said}");
    assert!(said.contains("Start the VM with a second -qmp for Windlass"), "{said}");
}

/// The process is another host: its socket accepts, as a monitor does, and says nothing unasked.
#[test]
fn a_stopped_hypervisor_is_told_from_a_monitor_that_is_taken() {
    let (host, hypervisor) = (Host::start(), Host::start());
    hypervisor.signal("STOP");
    host.put("a", &vm_file(&hypervisor.path("host.sock"), "127.0.0.71:1"));
    until("the cause is named", || checked(&host).1.contains("is stopped"));
    let said = checked(&host).1;
    assert!(said.contains("a: its monitor was last tried at 20"), "{said}");
    assert!(!said.contains("another") && !said.contains("second -qmp"), "{said}");
    hypervisor.signal("CONT");
    until("it is taken", || checked(&host).1.contains("another seems to have it"));
}

#[test]
fn the_informant_of_a_vm_that_is_only_watched_is_asked() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let (_guest, at) = informant("windlass_cpus_online 2\n");
    host.put("a", &format!("mode = \"observe\"\n{}", vm_file(machine.path(), &at)));
    let answers = format!("good     informant    It answers at {at}.");
    until("it answers", || checked(&host).1.contains(&answers));
    let (code, said) = checked(&host);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("a: what QEMU said at 20"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&host.say(&["vm", "check", "a", "--output", "json"])).unwrap();
    assert_eq!(json["informant"]["verdict"], "good");
    assert_eq!(json["informant"]["topic"], "informant");

    let nowhere = format!("mode = \"observe\"\n{}", vm_file(machine.path(), "127.0.0.71:1"));
    host.put("a", &nowhere);
    until("it does not answer", || checked(&host).1.contains("limited  informant    It does not"));
}

#[test]
fn an_absent_monitor_is_named_until_the_vm_is_there_and_again_when_it_is_gone() {
    let host = Host::start();
    host.put("a", &vm_file(&host.path("a.sock"), "127.0.0.71:1"));
    let absent = || {
        let (code, said) = checked(&host);
        let path = host.path("a.sock").display().to_string();
        code == Some(1) && said.contains(&path) && said.contains("Nothing listens there")
    };
    until("its absence is named", absent);
    assert!(checked(&host).1.contains("Not asked: the host is not attached to the VM"));
    let machine = Machine::start(host.path("a.sock"), 0);
    until("what scales is said", || checked(&host).1.contains("2 vCPUs, which can grow to 4"));
    assert_eq!(checked(&host).0, Some(0));
    drop(machine);
    until("its absence is named again", absent);
}

#[test]
fn a_maximum_for_which_qemu_was_not_started_is_told() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let file = vm_file(machine.path(), "127.0.0.71:1").replace("[max]\ncpu = 4", "[max]\ncpu = 6");
    host.put("a", &file);
    let told = "limited  cpu          `max` is 6 vCPU, and QEMU was started for 4";
    until("the maximum is told", || checked(&host).1.contains(told));
    assert_eq!(checked(&host).0, Some(0), "it works, within limits");
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a smaller one is not", || !checked(&host).1.contains("`max` is"));
}

#[test]
fn a_monitor_is_asked_without_a_host() {
    let host = Host::prepare();
    let machine = Machine::start(host.path("a.sock"), 0);
    let path = machine.path().to_str().unwrap();
    let said = host.say(&["vm", "check", "--qmp", path]);
    assert!(said.contains("2 vCPUs, which can grow to 4"), "{said}");
    let json = host.say(&["vm", "check", "--qmp", path, "--output", "json"]);
    let findings: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(findings.as_array().unwrap().len(), said.lines().count());
    drop(machine);
    let gone = host.windlass(&["vm", "check", "--qmp", host.path("a.sock").to_str().unwrap()]);
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
}

#[test]
fn of_a_vm_that_is_forgotten_nothing_is_found() {
    let host = Host::start();
    host.put("a", &vm_file(&host.path("a.sock"), "127.0.0.71:1"));
    until("it was looked for", || checked(&host).1.contains("Nothing listens there"));
    std::fs::remove_file(host.path("vms.d/a.toml")).unwrap();
    until("nothing is known of it", || checked(&host).0 == Some(66));
}

#[test]
fn a_vm_that_is_not_there_is_explained_as_top_lists_it() {
    let host = Host::start();
    let monitor = host.path("a.sock");
    host.put("a", &vm_file(&monitor, "127.0.0.71:1"));
    let words = format!("not there: no QEMU serves {}", monitor.display());
    until("top says so", || host.say(&["top"]).contains(&format!("a: {words}\n")));
    let said = host.say(&["explain", "a"]);
    assert!(said.contains(&format!(" a is {words}.\n")), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&host.say(&["explain", "a", "--output", "json"])).unwrap();
    assert_eq!(json["state"], "managed");
    assert_eq!(json["monitor"], monitor.to_str().unwrap());
}

/// The exit code, and what stands on standard output.
fn checked(host: &Host) -> (Option<i32>, String) {
    let output = host.windlass(&["vm", "check", "a"]);
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}
