//! VM files and host.toml while the host runs.

use crate::support::{Host, until, vm_file};
use serde_json::Value;
use std::fs;
use windlass_testkit::qmp::Machine;

#[test]
fn a_vm_is_managed_from_the_moment_its_file_is_there_until_it_is_gone() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 512);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is managed", || host.state()["vms"].as_array().unwrap().len() == 1);
    until("a is booked", || host.booked("a") == Some((2, 768)));
    assert!(host.say(&["top"]).contains("2 of 4 vCPU") || host.say(&["top"]).contains("768MiB"));
    let checked = host.say(&["vm", "check", "a"]);
    assert!(checked.contains("2 vCPUs, which can grow to 4"), "{checked}");
    host.say(&["vm", "remove", "a"]);
    until("a is removed", || listed(&host, "a").as_deref() == Some("removed"));
    assert_eq!(host.booked("a"), Some((2, 768)), "it counts until it ends");
    drop(machine);
    until("a is forgotten", || listed(&host, "a").is_none());
    until("its room is free", || host.booked("a").is_none());
}

#[test]
fn a_broken_file_is_reported_and_disturbs_nobody() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let good = vm_file(machine.path(), "127.0.0.71:1");
    host.put("a", &good);
    until("a is managed", || host.booked("a").is_some());
    host.put("b", "qmp = 7\n");
    host.put("a", &good.replace("[max]\ncpu = 4", "[max]\ncpu = 0"));
    let said = |words| problems(&host).iter().any(|said| said.contains(words));
    until("both are reported", || said("max.cpu") && said("qmp"));
    assert_eq!(listed(&host, "a").as_deref(), Some("managed"));
    assert_eq!(listed(&host, "b").as_deref(), Some("invalid"));
    assert!(host.say(&["explain", "a"]).contains("max.cpu = 0: must be 0.05 to 512"));
    assert_eq!(host.booked("a"), Some((2, 256)));
    host.put("c", "qmp = 8\n");
    until("the third is reported", || said("qmp = 8"));
    host.put("a", &good);
    for name in ["vms.d/b.toml", "vms.d/c.toml"] {
        fs::remove_file(host.path(name)).unwrap();
    }
    until("nothing is wrong", || problems(&host).is_empty());
    let log = host.log();
    let wrong = log.lines().filter(|line| line.contains("is not as it should"));
    let wrong: Vec<&str> = wrong.collect();
    assert_eq!(wrong.len(), 3, "{log}");
    for words in ["a.toml: max.cpu = 0", "b.toml: qmp = 7", "c.toml: qmp = 8"] {
        // Once, however often it was looked at.
        assert_eq!(wrong.iter().filter(|line| line.contains(words)).count(), 1, "{words}\n{log}");
    }
}

#[test]
fn a_file_is_added_after_it_was_checked_and_not_written_if_it_is_broken() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let monitor = machine.path().display().to_string();
    let add = |min: &'static str| {
        let monitor = monitor.clone();
        ["vm", "add", "a", "--qmp", &monitor, "--informant", "127.0.0.71:1", "--min", min, "--max"]
            .map(str::to_owned)
            .into_iter()
            .chain(["4/1GiB".to_owned()])
            .collect::<Vec<_>>()
    };
    let run =
        |args: Vec<String>| host.windlass(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let broken = run(add("0/256MiB"));
    assert_eq!(broken.status.code(), Some(65));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("min.cpu = 0"), "{broken:?}");
    assert!(!host.path("vms.d/a.toml").exists());
    assert!(run(add("1/256MiB")).status.success());
    until("a is managed", || host.booked("a").is_some());
    let again = run(add("1/256MiB"));
    assert_eq!(again.status.code(), Some(73), "{again:?}");
    let clash = host.path("clash.toml");
    fs::write(&clash, vm_file(machine.path(), "127.0.0.72:1")).unwrap();
    let (code, said) = host.fail(&["vm", "add", "b", "--file", clash.to_str().unwrap()]);
    assert!(code == 65 && said.contains("a has this monitor"), "{said}");
}

/// The first file is written and not in force: a file is, once it was the same at two looks.
#[test]
fn a_vm_that_clashes_with_one_just_added_is_refused_and_nothing_is_written() {
    let host = Host::start();
    let file = |monitor: &str, informant| {
        let path = host.path("new.toml");
        fs::write(&path, vm_file(&host.path(monitor), informant)).unwrap();
        path.display().to_string()
    };
    host.say(&["vm", "add", "a", "--file", &file("a.sock", "127.0.0.71:1")]);
    let clash = file("a.sock", "127.0.0.72:1");
    let (code, said) = host.fail(&["vm", "add", "b", "--file", &clash]);
    assert!(code == 65 && said.contains("a has this monitor"), "{said}");
    let clash = file("b.sock", "127.0.0.71:1");
    let (code, said) = host.fail(&["vm", "add", "b", "--file", &clash]);
    assert!(code == 65 && said.contains("a has the informant at this address"), "{said}");
    assert!(said.contains("nothing was written") && !host.path("vms.d/b.toml").exists(), "{said}");
    // The VM itself is no other VM.
    host.say(&["vm", "add", "a", "--replace", "--file", &file("a.sock", "127.0.0.71:1")]);
}

#[test]
fn a_vm_whose_minimum_the_node_has_not_is_refused() {
    let host = Host::start();
    let path = host.path("new.toml");
    let large = vm_file(&host.path("a.sock"), "127.0.0.71:1").replace("= 1\n", "= 5\n");
    fs::write(&path, large.replace("cpu = 4", "cpu = 6")).unwrap();
    let (code, said) = host.fail(&["vm", "add", "a", "--file", path.to_str().unwrap()]);
    assert!(code == 65 && said.contains("is more than the node has, which is 4 vCPU"), "{said}");
    assert!(!host.path("vms.d/a.toml").exists());
}

/// Nobody has made the folder of VM files yet.
#[test]
fn the_first_vm_makes_the_folder() {
    let mut host = Host::prepare();
    fs::remove_dir(host.path("vms.d")).unwrap();
    host.run();
    let machine = Machine::start(host.path("a.sock"), 0);
    let path = host.path("new.toml");
    fs::write(&path, vm_file(machine.path(), "127.0.0.73:1")).unwrap();
    host.say(&["vm", "add", "a", "--file", path.to_str().unwrap()]);
    until("a is booked", || host.booked("a").is_some());
}

/// A removed VM keeps its monitor for as long as it counts.
#[test]
fn a_vm_that_is_removed_is_not_there_to_be_ordered_or_added_under_another_name() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    let said = host.say(&["vm", "remove", "a"]);
    assert!(
        said.contains("a is no longer managed, and stays in the books until it ends"),
        "{said}"
    );
    until("it is removed", || listed(&host, "a").as_deref() == Some("removed"));
    let gone = "a was removed; what it has stays reserved until its QEMU ends";
    for order in [&["resume", "a"][..], &["vm", "release", "a"]] {
        let (code, said) = host.fail(order);
        assert!(code == 66 && said.contains(gone), "{said}");
    }
    let (code, said) = host.fail(&["vm", "remove", "a"]);
    assert!(code == 66 && said.contains("a was removed already; it counts until"), "{said}");
    let path = host.path("new.toml");
    fs::write(&path, vm_file(machine.path(), "127.0.0.72:1")).unwrap();
    let (code, said) = host.fail(&["vm", "add", "b", "--file", path.to_str().unwrap()]);
    assert!(code == 65 && said.contains("a has this monitor: its file is gone"), "{said}");
}

#[test]
fn a_file_that_was_never_managed_is_removed_without_a_word_of_books() {
    let host = Host::start();
    host.put("a", "qmp = 1\n");
    until("it is invalid", || listed(&host, "a").as_deref() == Some("invalid"));
    let (code, said) = host.fail(&["resume", "a"]);
    assert!(code == 66 && said.contains("the file of a is not valid"), "{said}");
    let said = host.say(&["vm", "remove", "a"]);
    assert!(said.contains("a was not managed") && !said.contains("books"), "{said}");
}

#[test]
fn what_cannot_be_deleted_is_said_to_be_there() {
    let host = Host::start();
    fs::create_dir(host.path("vms.d/a.toml")).unwrap();
    let (code, said) = host.fail(&["vm", "remove", "a"]);
    assert!(code == 73 && said.contains("vms.d/a.toml: Is a directory"), "{said}");
}

#[test]
fn a_node_that_promises_more_than_the_machine_has_is_valid_with_a_warning() {
    let host = Host::prepare();
    host.write_config("[node]\ncpu = 4096\nmemory = \"900TiB\"\n");
    let path = host.path("host.toml").display().to_string();
    let checked = host.windlass(&["check", &path]);
    assert!(checked.status.success(), "{checked:?}");
    let warned = String::from_utf8_lossy(&checked.stderr);
    let words = "node.cpu = 4096: is more than this machine has, which is ";
    assert!(
        warned.contains(words) && warned.contains("node.memory = 921600GiB: is more"),
        "{warned}"
    );
    let checked = host.windlass(&["check", &path, "--output", "json"]);
    let verdicts: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(verdicts[0]["warnings"].as_array().unwrap().len(), 2);
    let mut host = host;
    host.run();
    assert_eq!(host.state()["node"]["room"]["cpu"], 4_096_000);
}

#[test]
fn check_refuses_a_node_that_the_host_refuses() {
    let host = Host::prepare();
    host.write_config("[node]\nreserved = \"900TiB\"\n");
    let path = host.path("host.toml").display().to_string();
    let refused = "node.reserved = 921600GiB: must be less than the host's memory, which is ";
    let (code, said) = host.fail(&["check", &path]);
    assert!(code == 65 && said.contains(refused), "{code}: {said}");
    let (code, said) = host.fail(&["host", "--config", &path]);
    assert!(code == 65 && said.contains(refused), "{code}: {said}");
}

#[test]
fn minima_above_the_node_are_said_aloud() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let file = vm_file(machine.path(), "127.0.0.71:1").replace("[min]\ncpu = 1", "[min]\ncpu = 4");
    host.put("a", &file);
    let other = vm_file(&host.path("b.sock"), "127.0.0.72:1");
    let checked = host.path("b.toml");
    fs::write(&checked, &other).unwrap();
    until("a is in force", || listed(&host, "a").as_deref() == Some("managed"));
    let added = host.windlass(&["vm", "add", "b", "--file", checked.to_str().unwrap()]);
    let warned = String::from_utf8_lossy(&added.stderr).into_owned();
    assert!(
        warned.contains("the minima come to 5 vCPU / 512MiB, and the node has 4 vCPU"),
        "{warned}"
    );
    until("it is reported", || problems(&host).iter().any(|said| said.starts_with("node: min")));
}

#[test]
fn sighup_changes_what_may_be_promised_and_a_broken_file_changes_nothing() {
    let host = Host::start();
    let room = || host.state()["node"]["room"]["cpu"].as_u64().unwrap() / 1000;
    host.write_config("[node]\ncpu = 6\nmemory = \"4GiB\"\n");
    host.signal("HUP");
    until("six", || room() == 6);
    host.write_config("[node]\ncpu = 0\nmemory = \"4GiB\"\nodd = 1\n");
    host.signal("HUP");
    until("it is reported", || problems(&host).len() == 2);
    assert_eq!(room(), 6);
    host.write_config("cpu_limit = \"trust\"\n[node]\ncpu = 5\nmemory = \"4GiB\"\n");
    host.signal("HUP");
    until("five", || room() == 5);
    let said = problems(&host).join("\n");
    assert!(said.contains("cpu_limit: has changed, and takes effect at the next"), "{said}");
}

#[test]
fn a_missing_file_hides_no_problem_of_the_files_beside_it() {
    let host = Host::prepare();
    let path = |name: &str| host.path(name).display().to_string();
    let (absent, broken, good) = (path("absent.toml"), path("broken.toml"), path("host.toml"));
    fs::write(&broken, "odd = 1\n[node]\n").unwrap();
    let absent_is_said = format!("{absent}: there is no such file");
    let broken_is_said = format!("{broken}: odd = 1: is not a key");
    let (code, said) = host.fail(&["check", &absent, &broken, &good]);
    assert!(said.contains(&absent_is_said) && said.contains(&broken_is_said), "{said}");
    assert_eq!(code, 65, "an invalid file counts before a missing one");
    let output = host.windlass(&["check", &absent, &good]);
    assert!(String::from_utf8_lossy(&output.stderr).contains(&absent_is_said), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("host.toml: valid"), "{output:?}");
    assert_eq!(output.status.code(), Some(66));
    let output = host.windlass(&["check", &absent, &broken, &good, "--output", "json"]);
    let verdicts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let missing: Vec<_> = verdicts.as_array().unwrap().iter().map(|v| &v["missing"]).collect();
    assert_eq!(missing, [true, false, false]);
    assert!(host.windlass(&["check", &good]).status.success());
}

fn listed(host: &Host, vm: &str) -> Option<String> {
    let list: Value = serde_json::from_str(&host.say(&["vm", "list", "--output", "json"])).unwrap();
    let entry = list.as_array().unwrap().iter().find(|entry| entry["name"]["name"] == vm)?;
    Some(entry["state"].as_str().unwrap().to_owned())
}

/// The lines of `top` about what is wrong.
fn problems(host: &Host) -> Vec<String> {
    let said = host.say(&["top"]);
    let (_, problems) = said.split_once("\n! ").unwrap_or_default();
    problems.lines().map(|line| line.trim_start_matches("! ").to_owned()).collect()
}
