//! The whole program `windlass-plugin`, asked over HTTP.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "process/conformance.rs"]
mod conformance;
#[path = "process/memory.rs"]
mod memory;
#[path = "process/moving.rs"]
mod moving;
#[path = "process/stopped.rs"]
mod stopped;

use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_testkit::Folder;
use windlass_testkit::http::{self, Answer};
use windlass_testkit::process::{self, Process};
use windlass_testkit::wait::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_windlass-plugin");

const ADDRESSES: &str =
    "listen = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";

/// Two nodes of 4 vCPUs and 1 GiB; `a` and `b` on the first may each have all of it.
const LISTS: &str = "\
[[node]]\nname = \"one\"\ncpu = 4\nmemory = \"1GiB\"\n\
[[node]]\nname = \"two\"\ncpu = 4\nmemory = \"1GiB\"\n\
[[vm]]\nname = \"a\"\nnode = \"one\"\nmin = { cpu = 1, memory = \"256MiB\" }\nmax = { cpu = 4, memory = \"1GiB\" }\n\
[[vm]]\nname = \"b\"\nnode = \"one\"\nmin = { cpu = 1, memory = \"256MiB\" }\nmax = { cpu = 2, memory = \"512MiB\" }\n";

#[test]
fn permits_are_granted_and_refused_and_silent_vms_count_with_their_maximum() {
    let plugin = Plugin::start(LISTS);
    // Both count with their maximum, so the node is over and nobody gets more.
    assert_eq!(plugin.booked("one"), [("a", 4, 8), ("b", 2, 4)].map(owned));
    assert_eq!(plugin.permit("a", 1, 2), (200, Some((1, 2))));
    assert_eq!(plugin.booked("one")[0], owned(("a", 4, 8)), "it may be using more");
    assert_eq!(plugin.permit("a", 1, 2), (200, Some((1, 2))), "it heard the answer");
    assert_eq!(plugin.booked("one"), [("a", 1, 2), ("b", 2, 4)].map(owned));
    assert_eq!(plugin.permit("a", 4, 8), (200, Some((2, 4))), "b is silent, and keeps its maximum");
    plugin.gives_back("b", 1, 2);
    assert_eq!(plugin.permit("a", 4, 8), (200, Some((3, 6))));

    let (status, text) = plugin.post("{}");
    assert_eq!((status, text.split(':').next()), (400, Some("Invalid protocol version <invalid")));
    let (status, text) = plugin.post("[");
    assert!(status == 400 && text.starts_with("bad JSON"), "{text}");
    assert_eq!(plugin.permit("stranger", 1, 2).0, 404);
    let (status, text) = http(&plugin.permits, "GET", "/", "{}");
    assert_eq!((status, text.as_str()), (400, "must be POST"));
}

#[test]
fn the_state_is_dumped_in_the_reference_s_shape() {
    let plugin = Plugin::start(LISTS);
    plugin.gives_back("a", 1, 2);
    plugin.permit("a", 4, 8);
    let dump = plugin.dump();
    assert_eq!(dump["stopped"], false);
    assert!(dump["buildInfo"]["gitInfo"].as_str().unwrap().starts_with("windlass-v"));
    let state = &dump["state"];
    for key in ["ongoingMigrationDeletions", "otherPods"] {
        assert_eq!(state[key], serde_json::json!([]), "{key}");
    }
    assert_eq!(state["vmPods"][0]["podName"]["name"], "a");
    assert_eq!(state["maxTotalReservableCPU"], 4);
    assert_eq!(state["maxTotalReservableMemSlots"], 8);
    assert_eq!(state["config"]["nodeDefaults"]["computeUnit"]["vCPUs"], 1);
    assert_eq!(state["nodes"][0]["key"], "one");
    let node = &state["nodes"][0]["value"];
    assert_eq!(
        node["vCPU"],
        serde_json::json!({ "total": 4, "system": 0, "watermark": 4, "reserved": 4, "buffer": 1,
            "capacityPressure": 2, "pressureAccountedFor": 0 })
    );
    assert_eq!(node["memSlots"]["reserved"], 8);
    let pod = &node["pods"][0]["value"];
    assert_eq!(pod["vCPU"]["max"], 4);
    assert_eq!(pod["memSlots"]["capacityPressure"], 4);
    assert_eq!(pod["migrationState"], Value::Null);
    assert_eq!(http(&plugin.dumps, "GET", "/", "").0, 400, "an empty body is no JSON");
    assert_eq!(http(&plugin.dumps, "POST", "/", "{}").0, 405);
}

#[test]
fn the_reference_s_names_are_served_beside_ours() {
    let plugin = Plugin::start(LISTS);
    plugin.gives_back("a", 1, 2);
    plugin.permit("stranger", 1, 2);
    let (status, text) = http(&plugin.admin, "GET", "/metrics", "");
    assert_eq!(status, 200);
    for line in [
        "windlass_plugin_permit_requests_total{answer=\"granted\"} 2",
        "windlass_plugin_room_milli_cpu{node=\"one\"} 4000",
        "windlass_plugin_reserved_bytes{node=\"one\"} 805306368",
        "windlass_plugin_over{node=\"two\"} 0",
        "windlass_plugin_list_problems 0",
        "autoscaling_plugin_resource_requests_total{code=\"404\"} 1",
        "autoscaling_plugin_resource_requests_results_total{code=\"200\",node=\"one\",has_metrics=\"false\"} 2",
        "autoscaling_plugin_resource_requests_results_total{code=\"404\",node=\"<none>\",has_metrics=\"false\"} 1",
        "autoscaling_plugin_node_cpu_resources_current{node=\"one\",node_group=\"\",field=\"Reserved\"} 3000",
        "autoscaling_plugin_node_mem_resources_current{node=\"one\",node_group=\"\",field=\"Buffer\"} 268435456",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert_eq!(http(&plugin.admin, "GET", "/readyz", ""), (200, "ok\n".to_owned()));
}

/// A counter that falls is read as a process that started again.
#[test]
fn requests_in_all_are_counted_also_where_their_node_is_gone() {
    let plugin = Plugin::start(&LISTS.replace("node = \"one\"", "node = \"two\""));
    for (vm, status) in [("a", 200), ("a", 200), ("b", 200), ("stranger", 404)] {
        assert_eq!(plugin.permit(vm, 1, 2).0, status);
    }
    let counted = || {
        let (_, text) = http(&plugin.admin, "GET", "/metrics", "");
        let of = |name: &str| -> Vec<String> {
            text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
        };
        let results = of("autoscaling_plugin_resource_requests_results_total");
        (of("autoscaling_plugin_resource_requests_total"), results)
    };
    let before = counted();
    assert_eq!(before.0, ["200\"} 3", "404\"} 1"].map(in_all));
    assert_eq!(before.1.len(), 2);
    let (without, _) = LISTS.split_once("[[node]]\nname = \"two\"").unwrap();
    plugin.write(without);
    plugin.signal("HUP");
    until("the node is gone", || counted().1.len() == 1);
    assert_eq!(counted().0, before.0);
    // The same node again begins anew; all of them together go on.
    plugin.write(LISTS);
    plugin.signal("HUP");
    until("the node is back", || plugin.permit("a", 1, 2).0 == 200);
    assert_eq!(counted().0[0], in_all("200\"} 4"));
}

#[test]
fn a_hangup_reads_the_lists_again_and_a_bad_list_changes_nothing() {
    let plugin = Plugin::start(LISTS);
    plugin.gives_back("a", 1, 2);
    plugin.gives_back("b", 1, 2);
    // `a` moves, `b` stays and keeps what it was promised, `c` is new, `one` is smaller.
    let moved =
        LISTS.replacen("node = \"one\"", "node = \"two\"", 1).replacen("cpu = 4", "cpu = 3", 1)
            + "[[vm]]\nname = \"c\"\nnode = \"one\"\nmin = { cpu = 1, memory = \"256MiB\" }\n\
           max = { cpu = 2, memory = \"256MiB\" }\n";
    plugin.write(&moved);
    plugin.signal("HUP");
    until("the list is in force", || plugin.booked("one").iter().any(|(vm, ..)| vm == "c"));
    assert_eq!(plugin.booked("one"), [("b", 1, 2), ("c", 2, 2)].map(owned));
    assert_eq!(plugin.booked("two"), [("a", 4, 8)].map(owned), "nobody spoke for it there");
    assert_eq!(plugin.permit("a", 2, 2), (200, Some((2, 2))));
    assert_eq!(plugin.permit("b", 2, 2), (200, Some((1, 2))), "3 vCPUs, of which c has 2");

    plugin.write(&moved.replace("\"c\"", "\"b\"").replace("cpu = 3", "cpu = 0"));
    plugin.signal("HUP");
    let problems = || http(&plugin.admin, "GET", "/metrics", "").1;
    until("it is counted", || problems().contains("windlass_plugin_list_problems 2"));
    assert_eq!(plugin.booked("one"), [("b", 1, 2), ("c", 2, 2)].map(owned));
    let log = plugin.log();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert_eq!(errors.len(), 1, "{log}");
    assert!(errors[0].contains("vm[b].name = default/b: is listed already"), "{log}");
    assert!(errors[0].contains("node[one].cpu = 0: must be 0.05 to 4096 vCPUs"), "{log}");

    plugin.write(LISTS);
    plugin.signal("HUP");
    until("the list is in force", || {
        plugin.booked("one").len() == 2 && plugin.booked("two").is_empty()
    });
    until("nothing is wrong", || problems().contains("windlass_plugin_list_problems 0"));
}

#[test]
fn minima_above_the_room_are_said() {
    let plugin = Plugin::start(&LISTS.replace("cpu = 4\nmemory", "cpu = 1\nmemory"));
    let (_, text) = http(&plugin.admin, "GET", "/metrics", "");
    assert!(text.contains("windlass_plugin_list_problems 1"), "{text}");
    assert!(plugin.log().contains("the minima of its vms come to more"), "{}", plugin.log());
}

#[test]
fn the_log_level_is_changed_over_the_admin_socket_alone() {
    let mut plugin = Plugin::start(LISTS);
    let socket = plugin.path("admin.sock");
    let (status, words) = http(&plugin.admin, "PUT", "/log-level", "debug");
    assert_eq!(status, 405);
    let place = format!("the log level takes PUT at the socket {}", socket.display());
    assert!(words.contains(&place), "{words}");
    assert_eq!(
        http(&plugin.admin, "GET", "/log-level", ""),
        (200, "kube_runtime=off,kube_client=off,info\n".to_owned())
    );
    let mode = fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{mode:o}");
    let put = http::request("PUT", "/log-level", "debug");
    let changed = http::raw(UnixStream::connect(&socket).unwrap(), put.as_bytes());
    let changed = http::parse(&changed).unwrap();
    assert_eq!((changed.status, changed.body.as_str()), (200, "debug\n"));
    assert!(plugin.process.stop().success());
    assert!(!socket.exists());
}

/// More than 64 KiB is refused by its head, before a byte of it is read.
#[test]
fn a_body_that_is_too_large_is_refused_with_the_limit_at_every_listener() {
    let plugin = Plugin::start(LISTS);
    for at in [&plugin.permits, &plugin.dumps, &plugin.admin] {
        let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n";
        let answer = http::raw(http::connect(at), head.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 413 "), "{at}: {answer}");
        let words = "\r\n\r\nthe request's body is larger than 65536 bytes\n";
        assert!(answer.ends_with(words), "{at}: {answer}");
    }
    let (status, words) = plugin.post(&" ".repeat(60_000));
    assert_eq!(status, 400);
    assert!(words.starts_with("bad JSON: ") && words.contains("1024 bytes"), "{words}");
}

#[test]
fn the_reference_s_json_goes_with_a_list() {
    let json = r#"{"memBlockSize":"1Gi","nodeDefaults":{"cpu":{"watermark":0.7,"system":"500m"},
        "memory":{"watermark":0.7,"system":"1Gi"},"computeUnit":{"vCPUs":0.25,"mem":1}},
        "schedulerName":"x","migrationDeletionRetrySeconds":5}"#;
    let folder = Folder::create().unwrap();
    let config = folder.put("a.json", json);
    let nodes = "[[node]]\nname = \"n\"\ncpu = 1\nmemory = \"1GiB\"\n";
    let books = folder.put("nodes.toml", nodes);
    let (code, said) = fail(&["--config", config.to_str().unwrap()]);
    assert!(code == 64 && said.contains("--books FILE is needed"), "{said}");
    let args = ["--config", config.to_str().unwrap(), "--books", books.to_str().unwrap()];
    let (code, said) = fail(&args);
    assert!(
        code == 65 && said.contains("node[n] = 1 vCPU / 1GiB: must be more than the 0.5"),
        "{said}"
    );
    fs::write(&books, "[[node]]\nname = \"n\"\n").unwrap();
    fs::write(&config, json.replace("\"x\"", "\"\"")).unwrap();
    let (code, said) = fail(&args);
    assert_eq!(code, 65, "{said}");
    for words in ["schedulerName = \"\"", "node[n].cpu: is missing", "node[n].memory: is missing"] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words_and_with_a_code_of_its_own() {
    let plugin = Plugin::start(LISTS);
    let folder = Folder::create().unwrap();
    let text = ADDRESSES.replacen("127.0.0.1:0", &plugin.permits, 1);
    let taken = folder.put("taken.toml", text + LISTS);
    let broken = folder.put("broken.toml", "listen = 1\nadmin = 2\n");
    for (args, code, words) in [
        (&["--config", "/nonexistent.toml"][..], 66, "there is no such file"),
        (&["--config", "/nonexistent.yaml"], 64, "must end in .toml or .json"),
        (&["--config", "/x.toml", "--books", "/y.toml"], 64, "--books goes with a .json"),
        (&["--log", "x=loudest", "--config", "/x.toml"], 64, "log filter"),
        (&["--fly"], 64, "unexpected argument '--fly'"),
        (&["--config", taken.to_str().unwrap()], 73, "cannot serve permits at 127.0.0.1:"),
        (&["--config", broken.to_str().unwrap()], 65, "admin = 2: must be an IP address"),
    ] {
        let (got, said) = fail(args);
        assert!(got == code && said.contains(words), "{args:?} ended with {got}: {said}");
    }
    let help = Command::new(PROGRAM).arg("--help").output().unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Examples"));
}

#[test]
fn it_ends_in_good_order() {
    let mut plugin = Plugin::start(LISTS);
    let status = plugin.process.stop();
    assert!(status.success(), "{status}\n{}", plugin.log());
}

/// A plugin that runs. It ends with the value.
struct Plugin {
    process: Process,
    permits: String,
    dumps: String,
    admin: String,
    folder: Folder,
    /// What each agent was permitted last.
    last: RefCell<BTreeMap<String, Value>>,
}

// === impl Plugin ===

impl Plugin {
    fn start(lists: &str) -> Self {
        let folder = Folder::create().unwrap();
        let config = folder.put("plugin.toml", format!("{ADDRESSES}{lists}"));
        let log = fs::File::create(folder.at("log")).unwrap();
        let process = Process::start(PROGRAM, |command| {
            command.args([Path::new("--config"), &config]);
            command.args([Path::new("--admin-socket"), &folder.at("admin.sock")]).stderr(log);
        });
        let next = |name: &str| {
            let line =
                process.out().next_line().unwrap_or_else(|| panic!("{}", folder.read("log")));
            line.strip_prefix(name).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (permits, dumps) = (next("permits http://"), next("dump-state http://"));
        let admin = next("admin http://");
        next("ready");
        Self { process, permits, dumps, admin, folder, last: RefCell::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.at(name)
    }

    fn write(&self, lists: &str) {
        self.folder.put("plugin.toml", format!("{ADDRESSES}{lists}"));
    }

    fn log(&self) -> String {
        self.folder.read("log")
    }

    fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    fn post(&self, body: &str) -> (u16, String) {
        http(&self.permits, "POST", "/", body)
    }

    /// Asks for vCPUs and slots of 128 MiB, in v2.1, and names what was permitted last.
    fn permit(&self, vm: &str, cpu: u64, slots: u64) -> (u16, Option<(u64, u64)>) {
        let last = self.last.borrow().get(vm).cloned();
        let (status, answer) = self.post(&body(4, vm, (cpu, slots), last.as_ref()));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let permit = &answer["permit"];
        if permit.is_object() {
            self.last.borrow_mut().insert(vm.to_owned(), permit.clone());
        }
        (status, permit["vCPUs"].as_u64().zip(permit["mem"].as_u64()))
    }

    /// Asks for less, and again: the agent then names the answer, and what is beyond it is free.
    fn gives_back(&self, vm: &str, cpu: u64, slots: u64) {
        for _ in 0..2 {
            assert_eq!(self.permit(vm, cpu, slots), (200, Some((cpu, slots))));
        }
    }

    fn dump(&self) -> Value {
        let (status, text) = http(&self.dumps, "GET", "/", "{}");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// What the books of a node have: vCPUs and slots, by VM.
    fn booked(&self, node: &str) -> Vec<(String, u64, u64)> {
        let dump = self.dump();
        let nodes = dump["state"]["nodes"].as_array().unwrap();
        let found = nodes.iter().find(|one| one["key"] == node).unwrap();
        let pods = found["value"]["pods"].as_array().unwrap();
        let booked = pods.iter().map(|pod| {
            let (name, value) = (&pod["key"]["name"], &pod["value"]);
            let of = |axis: &str| value[axis]["reserved"].as_u64().unwrap();
            (name.as_str().unwrap().to_owned(), of("vCPU"), of("memSlots"))
        });
        booked.collect()
    }
}

/// A request for vCPUs and slots of 128 MiB, in a version before v4.0. Versions from v2.1 (4) on name what was
/// permitted last.
fn body(version: u32, vm: &str, (cpu, slots): (u64, u64), last: Option<&Value>) -> String {
    let mut body = json!({
        "protoVersion": version,
        "pod": { "namespace": "default", "name": vm },
        "resources": { "vCPUs": cpu, "mem": slots },
        "metrics": null,
    });
    if let Some(last) = last {
        body["lastPermit"] = last.clone();
    }
    body.to_string()
}

fn in_all(rest: &str) -> String {
    format!("autoscaling_plugin_resource_requests_total{{code=\"{rest}")
}

fn owned((vm, cpu, slots): (&str, u64, u64)) -> (String, u64, u64) {
    (vm.to_owned(), cpu, slots)
}

/// Runs the program, which is to fail: its exit code and what it says.
fn fail(args: &[&str]) -> (i32, String) {
    process::fail(PROGRAM, args)
}

fn http(at: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let Answer { status, body, .. } = http::ask(at, method, path, body);
    (status, body)
}
