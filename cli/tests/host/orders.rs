//! Freeze, pause, release, and what the command line says when it cannot.

use crate::support::{Host, until, vm_file};
use std::process::Command;
use windlass_testkit::qmp::Machine;

#[test]
fn a_vm_is_paused_resumed_released_and_taken_back() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    host.say(&["pause", "a", "--for", "1h30m"]);
    until("it says so", || host.say(&["explain", "a"]).contains(": paused until "));
    assert!(host.say(&["vm", "list"]).contains("Z"));
    host.say(&["resume", "a"]);
    until("it says so no more", || !host.say(&["explain", "a"]).contains("paused until"));
    until("a is seen", || !host.state()["vms"][0]["seen"].is_null());
    let said = host.say(&["vm", "release", "a", "--memory", "256MiB", "--cpu", "2"]);
    assert!(said.contains("a is let go with 2 vCPU / 256MiB"), "{said}");
    until("it is released", || host.say(&["vm", "list"]).contains("released"));
    let (code, said) = host.fail(&["vm", "release", "a"]);
    assert!(code == 1 && said.contains("released already"), "{said}");
    host.say(&["resume", "a"]);
    until("it is managed", || host.say(&["vm", "list"]).contains("managed"));
    assert!(host.booked("a").is_some());
}

#[test]
fn a_new_file_of_a_released_vm_is_written_with_a_warning() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    let file = host.path("new.toml");
    std::fs::write(&file, vm_file(machine.path(), "127.0.0.71:1")).unwrap();
    let add = ["vm", "add", "a", "--replace", "--file", file.to_str().unwrap()];
    assert!(host.say(&add).contains("the host follows within a few seconds"));
    until("a is booked", || host.booked("a").is_some());
    host.say(&["vm", "release", "a"]);
    let added = host.windlass(&add);
    assert!(added.status.success(), "{added:?}");
    let (said, warned) =
        (String::from_utf8_lossy(&added.stdout), String::from_utf8_lossy(&added.stderr));
    assert!(
        warned.contains("warning: a is released; `windlass resume a` takes it back"),
        "{warned}"
    );
    assert!(said.contains("the host follows once the VM is taken back"), "{said}");
    host.say(&["resume", "a"]);
    assert!(host.windlass(&add).stderr.is_empty());
}

#[test]
fn a_frozen_host_says_so_everywhere() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    until("a is booked", || host.booked("a").is_some());
    assert!(host.say(&["freeze"]).starts_with("frozen"));
    assert_eq!(host.state()["frozen"], true);
    assert!(host.say(&["top"]).contains("FROZEN"));
    until("explained", || host.say(&["explain", "a"]).contains("The host is frozen"));
    until("counted", || host.admin("/metrics").contains("windlass_host_frozen 1"));
    host.say(&["thaw"]);
    assert_eq!(host.state()["frozen"], false);
}

#[test]
fn what_cannot_be_is_refused_in_words_and_with_a_code_of_its_own() {
    let host = Host::start();
    for (args, code, words) in [
        (&["explain", "nope"][..], 66, "nothing is known of a VM nope"),
        (&["pause", "nope", "--for", "1h"], 66, "there is no VM nope, nor any other"),
        (&["pause", "nope", "--for=-1h"], 64, "longer than nothing"),
        (&["pause", "nope", "--for", "soon"], 64, "invalid value 'soon'"),
        (&["pause", "nope", "--until", "2020-01-01T00:00:00Z"], 64, "not in the future"),
        (&["pause", "nope", "--for", "soon"], 64, "write hours, minutes or seconds, as 2h, 15m"),
        (&["pause", "nope", "--for", "2"], 64, "has no unit: write 2s, 2m or 2h"),
        (&["pause", "nope", "--until", "tomorrow"], 64, "invalid value 'tomorrow'"),
        (&["pause", "nope", "--until", "tomorrow"], 64, "as 2026-12-24T18:00:00Z"),
        (&["pause", "nope"], 64, "required"),
        (&["resume", "no/pe"], 64, "`no/pe` is no name of a VM"),
        (&["vm", "release", "nope", "--cpu", "two"], 64, "write vCPUs, as 2 or 0.25"),
        (&["vm", "release", "nope", "--memory", "2G"], 64, "write memory, as 512MiB or 1GiB"),
        (&["vm", "remove", "nope"], 66, "there is no VM nope: no file "),
        (&["vm", "remove", "nope"], 66, "nope.toml"),
        (&["vm", "remove", "../host"], 64, "is no name of a VM"),
        (&["vm", "add", "a"], 64, "required"),
        (&["vm", "check", "nope"], 66, "nothing is known"),
        (&["explain", "nope", "--minutes", "61"], 64, "61 is not in 1..=60"),
        (&["check", "/nonexistent.toml"], 66, "there is no such file"),
        (&["check"], 64, "required"),
        (&["fly"], 64, "unrecognized subcommand 'fly'"),
        (&["top", "--socket", "/nonexistent.sock"], 69, "there is no such socket"),
        (&["host", "--config", "/nonexistent.toml"], 66, "there is no such file"),
    ] {
        let (got, said) = host.fail(args);
        assert!(said.contains(words), "{args:?} said {said}");
        assert_eq!(got, code, "{args:?} said {said}");
    }
}

#[test]
fn a_second_host_at_the_same_place_touches_nothing() {
    let host = Host::start();
    let config = host.path("host.toml");
    let (code, said) = host.fail(&["host", "--config", config.to_str().unwrap()]);
    assert!(code == 73 && said.contains("another process listens there"), "{said}");
    let text = std::fs::read_to_string(&config).unwrap().replace("host.sock", "other.sock");
    let other = host.path("other.toml");
    std::fs::write(&other, text).unwrap();
    let (code, said) = host.fail(&["host", "--config", other.to_str().unwrap()]);
    assert!(code == 73 && said.contains("another `windlass host` has this state_dir"), "{said}");
    host.say(&["top"]);
}

#[test]
fn help_and_completions_need_no_host() {
    let windlass = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass")).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for command in
        ["host", "top", "explain", "pause", "resume", "freeze", "thaw", "check", "log-level"]
    {
        let help = windlass(&["help", command]);
        assert!(help.contains("Example"), "{command} has no example:\n{help}");
    }
    for command in ["add", "list", "check", "release", "remove"] {
        let help = windlass(&["vm", command, "--help"]);
        assert!(help.contains("Example"), "vm {command} has no example:\n{help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = windlass(&["completions", shell]);
        assert!(script.contains("WINDLASS_COMPLETE") && script.contains("windlass"), "{shell}");
    }
    let keys: serde_json::Value =
        serde_json::from_str(&windlass(&["check", "--keys", "--output", "json"])).unwrap();
    let files: Vec<_> = keys.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(files, ["agent", "host", "listed", "node", "plugin", "pool", "vm"]);
    assert!(
        keys["host"].as_array().unwrap().len() > 10 && keys["vm"].as_array().unwrap().len() > 10
    );
    let keys = windlass(&["check", "--keys"]);
    assert!(keys.contains("node.reserved"), "{keys}");
    assert!(keys.contains("plugin.toml, of each [[kubernetes.pool]]\n  name: "), "{keys}");
    assert!(windlass(&["--help"]).contains("Exit codes"));
}
