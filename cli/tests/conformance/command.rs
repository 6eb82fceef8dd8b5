//! `windlass conformance` as people type it: what it prints, refuses, and ends with.

use std::process::{Command, Output};

fn conformance(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass")).arg("conformance").args(args).output().unwrap()
}

/// Refused with this code, in words that have all of these.
fn refuses(args: &[&str], code: i32, words: &[&str]) {
    let found = conformance(args);
    let said = String::from_utf8_lossy(&found.stderr).into_owned();
    assert_eq!(found.status.code(), Some(code), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: {word:?} is not in {said:?}");
    }
    assert!(found.stdout.is_empty(), "{args:?}: something was tried");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_tried() {
    let at = "127.0.0.1:10301";
    refuses(&["informant", "--target", "nowhere"], 64, &["--target", "'nowhere'", "ip:port"]);
    refuses(&["informant", "--target", "127.0.0.1:0"], 64, &["port is 0", "1 to 65535"]);
    refuses(
        &["informant", "--target", at, "--advertise", "0.0.0.0"],
        64,
        &["--advertise", "one machine"],
    );
    refuses(
        &["informant", "--target", at, "--versions", "v7"],
        64,
        &["--versions", "\"v7\"", "v1.0, v1.1"],
    );
    refuses(&["informant", "--target", at, "--only", "x"], 64, &["--only", "\"x\"", "list"]);
    refuses(
        &["informant", "--target", at, "--provoke", " "],
        64,
        &["--provoke", "command of the shell"],
    );
    let url = ["plugin", "--target", "http://localhost:1", "--vm", "a", "--other", "b"];
    refuses(&url, 64, &["--target", "http://localhost:1", "http://ip:port"]);
    let plugin = ["plugin", "--target", at];
    let vms = |vm, other| [&plugin[..], &["--vm", vm, "--other", other]].concat();
    refuses(&vms("a", "default/a"), 64, &["--vm, --other", "default/a is named twice"]);
    for twice in ["a", "b"] {
        let moving = [&vms("a", "b")[..], &["--moving", twice]].concat();
        refuses(&moving, 64, &["--vm, --other and --moving are to name different VMs"]);
    }
    refuses(&vms("", "b"), 64, &["--vm", "1 to 253"]);
    refuses(
        &[&vms("a", "b")[..], &["--slot", "1KiB"]].concat(),
        64,
        &["--slot", "1KiB", "1MiB to 64GiB"],
    );
    refuses(&["agent", "--run", ""], 64, &["--run", "command of the shell"]);
    refuses(&["agent", "--run", "true", "--at-once", "0"], 64, &["--at-once", "1..=64"]);
    refuses(&["agent", "--run", "true", "--json", "/nowhere/x"], 73, &["/nowhere/x"]);
    refuses(&["agent", "--run", "true", "--logs", "/proc/x"], 73, &["/proc/x"]);
}

#[test]
fn a_target_that_is_not_there_is_no_failure_of_every_case() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = free.to_string();
    refuses(&["informant", "--target", &target], 69, &["--target", "no server listens", &target]);
    let plugin = ["plugin", "--target", &target, "--vm", "a", "--other", "b"];
    refuses(&plugin, 69, &["--target", "no server listens", &target]);
    let moving = [&plugin[..], &["--moving", "c"]].concat();
    refuses(&moving, 69, &["--target", "no server listens", &target]);
}

#[test]
fn a_command_that_cannot_make_memory_short_is_refused_first() {
    let listens = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listens.local_addr().unwrap().to_string();
    let args = ["informant", "--target", &target, "--provoke", "exit 3 #"];
    refuses(&args, 64, &["--provoke", "exit 3", "exit status: 3", "status 0"]);
}

#[test]
fn an_agent_that_ends_by_itself_fails_at_once_in_its_own_words() {
    let folder = windlass_testkit::Folder::create().unwrap();
    let (json, logs) = (folder.at("report.json"), folder.at("logs"));
    let started = std::time::Instant::now();
    let found = conformance(&[
        "agent",
        "--run",
        "sh -c 'echo no such file >&2; exit 3'",
        "--informant-versions",
        "v2.0",
        "--only",
        "an-agent-registers-by-itself",
        "--only",
        "an-agent-takes-its-leave",
        "--json",
        json.to_str().unwrap(),
        "--logs",
        logs.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(started.elapsed() < std::time::Duration::from_secs(15), "nobody noticed for long");
    let ended = "the agent ended by itself: exit status: 3; it said last: no such file";
    let (as_they_came, at_the_end) = said.split_once("\n\n").unwrap();
    assert_eq!((as_they_came.matches(ended).count(), at_the_end.matches(ended).count()), (2, 2));
    assert!(said.ends_with("\nagent: 0 passed, 2 failed\n"), "{said}");
    assert!(found.stderr.is_empty(), "{}", String::from_utf8_lossy(&found.stderr));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!((&report["passed"], &report["failed"]), (&0.into(), &2.into()));
    assert!(report["outcomes"][0]["fault"].as_str().unwrap().contains(ended));
    let log = logs.join("an-agent-registers-by-itself-v2.0.log");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "no such file\n");
}

#[test]
fn every_case_is_listed_once_with_its_versions_and_rules() {
    let found = conformance(&["list"]);
    let said = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found.status.code(), Some(0));
    for line in [
        "  the-newest-counts  v1.0-v2.0  [I-CUR-1 I-CUR-2]",
        "  v1.0-needs-metrics  v1.0  [P-CHK-6]",
        "  who-is-not-heard-stops-acting  v1.2-v2.0  [I-HND-1]  ours",
    ] {
        assert_eq!(said.lines().filter(|found| *found == line).count(), 1, "{line}: {said}");
    }
}
