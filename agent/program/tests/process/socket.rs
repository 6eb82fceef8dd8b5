//! What people ask and order of an agent over its sockets, and what of that survives a restart.

use crate::LIST;
use crate::guest::Guest;
use crate::support::{Agent, Folder, Plugin, vm_file};
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use windlass_testkit::http::{parse, raw, request};
use windlass_testkit::qmp::Machine;
use windlass_testkit::wait::until;

#[test]
fn people_look_and_order_and_a_freeze_survives_a_restart() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    let mut agent = Agent::start(&folder, &plugin);
    folder.put("a", &vm_file(machine.path(), guest.address()));
    folder.put("wrong", "qmp = 1\n");
    until("it is seen", || get(&folder, "/v1/state")["vms"][0]["seen"].is_object());
    until("a broken file is said", || {
        let vms = get(&folder, "/v1/vms");
        (&vms[0]["state"], &vms[1]["state"]) == (&"managed".into(), &"invalid".into())
    });
    let state = get(&folder, "/v1/state");
    assert_eq!((&state["frozen"], &state["node"]), (&false.into(), &Value::Null));
    until("it has a session", || get(&folder, "/v1/state")["vms"][0]["session"] == "active");
    let facts = get(&folder, "/v1/host");
    assert_eq!(facts["config"], folder.path("agent.toml").display().to_string());
    let problems = get(&folder, "/v1/problems").to_string();
    assert!(problems.contains("wrong.toml"), "{problems}");

    let (status, answer) = ask(&folder, "host.sock", "POST", "/v1/freeze", "");
    assert_eq!((status, &answer["changed"]), (200, &true.into()), "{answer}");
    guest.load(1.7);
    agent.kill();
    agent.restart();
    until("it knows its goal", || {
        get(&folder, "/v1/state")["vms"][0]["goal"]["cpu"].as_u64() == Some(2_000)
    });
    assert_eq!(get(&folder, "/v1/state")["frozen"], true);
    assert_eq!(agent.slots("a"), Some(2), "it grew while it was frozen");
    let frozen = "windlass_agent_frozen 1";
    until("it is counted", || agent.metrics().lines().any(|line| line == frozen));
    assert_eq!(ask(&folder, "host.sock", "POST", "/v1/thaw", "").0, 200);
    until("it has its goal", || agent.slots("a") == Some(4));
    until("its growth is told", || {
        let told = get(&folder, "/v1/explain/a");
        told["decisions"].as_array().is_some_and(|decisions| !decisions.is_empty())
    });

    let body = "{\"until\":\"2020-01-01T00:00:00Z\"}";
    let (status, answer) = ask(&folder, "host.sock", "POST", "/v1/vm/a/pause", body);
    assert_eq!((status, &answer["code"]), (400, &"bad-request".into()));
    let (status, _) = ask(&folder, "host.sock", "POST", "/v1/vm/a/release", "{}");
    assert_eq!(status, 200);
    until("it is let go", || get(&folder, "/v1/vms")[0]["state"] == "released");
    assert_eq!(agent.stop(), Some(0));
    assert!(!folder.path("host.sock").exists() && !folder.path("host.view.sock").exists());
    agent.restart();
    assert_eq!(get(&folder, "/v1/vms")[0]["state"], "released");
    let told = get(&folder, "/v1/explain/a");
    assert!(!told["decisions"].as_array().unwrap().is_empty(), "its history is gone: {told}");
}

#[test]
fn those_who_may_only_look_order_nothing() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let _agent = Agent::start(&folder, &plugin);
    let (status, state) = ask(&folder, "host.view.sock", "GET", "/v1/state", "");
    assert_eq!((status, &state["frozen"]), (200, &false.into()));
    let (status, refusal) = ask(&folder, "host.view.sock", "POST", "/v1/freeze", "");
    assert_eq!(status, 403, "{refusal}");
    assert_eq!(get(&folder, "/v1/state")["frozen"], false);
}

#[test]
fn the_ports_of_an_earlier_release_are_taken_over() {
    let plugin = Plugin::start(LIST);
    let folder = Folder::new();
    let machine = Machine::start(folder.path("a.sock"), 0);
    let guest = Guest::start();
    folder.put("a", &vm_file(machine.path(), guest.address()));
    std::fs::create_dir(folder.path("state")).unwrap();
    // The last of the usual range: nothing else gives it to the first VM.
    folder.write("state/ports.json", "{\"a\":10399}");
    let _agent = Agent::start(&folder, &plugin);
    until("it is registered", || guest.callback().is_some());
    assert_eq!(guest.callback().map(|at| at.port()), Some(10_399));
    assert!(!folder.path("state/ports.json").exists());
    let kept = std::fs::read_to_string(folder.path("state/state.json")).unwrap();
    assert!(kept.contains("10399"), "{kept}");
}

fn get(folder: &Folder, path: &str) -> Value {
    let (status, answer) = ask(folder, "host.sock", "GET", path, "");
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn ask(folder: &Folder, socket: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let stream = UnixStream::connect(folder.path(socket)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let answer = parse(&raw(stream, request(method, path, body).as_bytes())).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}
