//! Broken host.toml and VM files: each is refused in words that name field, value and limit.

use windlass_cli::host::config::HostConfig;
use windlass_cli::host::keys::HOST;
use windlass_vm_files::text;

/// A host.toml, and what must be said about it.
const HOSTS: &[(&str, &[&str])] = &[
    ("state_dir = 7", &["state_dir = 7: must be an absolute path"]),
    ("state_dir = \"var/lib\"", &["state_dir = \"var/lib\": must be an absolute path"]),
    ("vms_dir = \"\"", &["vms_dir = \"\": must be an absolute path"]),
    ("vms_dir = [\"/a\"]", &["vms_dir = a list: must be an absolute path"]),
    ("vms_dir = \"/var/lib/windlass\"", &["vms_dir = /var/lib/windlass: must not be the same"]),
    ("socket = \"host.sock\"", &["socket = \"host.sock\": must be an absolute path"]),
    ("socket = true", &["socket = true: must be an absolute path of at most 107 bytes"]),
    ("admin = \"localhost:10304\"", &["admin = \"localhost:10304\": must be an IP address"]),
    ("admin = \"127.0.0.1\"", &["admin = \"127.0.0.1\": must be an IP address and a port"]),
    ("admin = \"127.0.0.1:65536\"", &["admin = \"127.0.0.1:65536\": must be an IP address"]),
    ("admin = 10304", &["admin = 10304: must be an IP address and a port"]),
    ("admin = \"127.0.0.1:10311\"", &["callback_ports = 10310-11309: must not contain 10311"]),
    ("callback_listen = \"127.0.0.1:80\"", &["callback_listen = \"127.0.0.1:80\": must be an IP"]),
    ("callback_listen = \"all\"", &["callback_listen = \"all\": must be an IP address"]),
    ("callback_ports = 10310", &["callback_ports = 10310: must be FIRST-LAST"]),
    ("callback_ports = \"10310\"", &["callback_ports = \"10310\": must be FIRST-LAST"]),
    ("callback_ports = \"20-10\"", &["callback_ports = \"20-10\": must be FIRST-LAST"]),
    ("callback_ports = \"0-10\"", &["callback_ports = \"0-10\": must be FIRST-LAST"]),
    ("callback_ports = \"1-65536\"", &["callback_ports = \"1-65536\": must be FIRST-LAST"]),
    ("cpu_limit = \"park\"", &["cpu_limit = \"park\": must be cgroup, trust or none"]),
    ("cpu_limit = \"Trust\"", &["cpu_limit = \"Trust\": must be cgroup, trust or none"]),
    ("cpu_limit = true", &["cpu_limit = true: must be cgroup, trust or none"]),
    (
        "trust_guest_parking = true",
        &[
            "trust_guest_parking = true: is now cpu_limit: in place of true write cpu_limit = \"trust\"",
        ],
    ),
    (
        "trust_guest_parking = 1\ncpu_limit = \"none\"",
        &["trust_guest_parking = 1: is now cpu_limit"],
    ),
    ("node = 6", &["node = 6: must be a table"]),
    ("[node]\ncpu = 0", &["node.cpu = 0: must be 0.05 to 4096 vCPUs"]),
    ("[node]\ncpu = -1", &["node.cpu = -1: must be 0.05 to 4096 vCPUs"]),
    ("[node]\ncpu = nan", &["node.cpu = NaN: must be 0.05 to 4096 vCPUs"]),
    ("[node]\ncpu = inf", &["node.cpu = inf: must be 0.05 to 4096 vCPUs"]),
    ("[node]\ncpu = 1e300", &["node.cpu = 1e300: must be 0.05 to 4096 vCPUs"]),
    ("[node]\ncpu = \"six\"", &["node.cpu = \"six\": must be 0.05 to 4096 vCPUs"]),
    (
        "[node]\nmemory = \"24GB\"",
        &["node.memory = \"24GB\": GB is no unit of memory here; write GiB"],
    ),
    ("[node]\nmemory = \"24\"", &["node.memory = \"24\": has no unit; write MiB or GiB"]),
    ("[node]\nmemory = 24", &["node.memory = 24: must be 64MiB to 1024TiB"]),
    ("[node]\nmemory = -5", &["node.memory = -5: must be 64MiB to 1024TiB"]),
    ("[node]\nmemory = \"99999999999999TiB\"", &["node.memory = \"99999999999999TiB\": must be"]),
    (
        "[node]\nmemory = \"24GiB\"\nreserved = \"1GiB\"",
        &["node.memory = \"24GiB\" and node.reserved = \"1GiB\": say one of the two, not both"],
    ),
    ("[node]\nreserved = 1.5", &["node.reserved = 1.5: must be less than the host's memory"]),
    ("[node]\ncpus = 6", &["node.cpus = 6: is not a key; did you mean node.cpu?"]),
    ("[compute_unit]\ncpu = 0", &["compute_unit.cpu = 0: must be 0.05 to 64 vCPUs"]),
    ("[compute_unit]\nmemory = 0", &["compute_unit.memory = 0: must be 1MiB to 1TiB"]),
    ("[compute_unit]\nmemory = \"1\u{a0}GiB!\"", &["compute_unit.memory = "]),
    ("[compute_unit.cpu]\nx = 1", &["compute_unit.cpu = a table: must be 0.05 to 64 vCPUs"]),
    ("statedir = \"/var\"", &["statedir = \"/var\": is not a key; did you mean state_dir?"]),
    ("[nodes]\ncpu = 6", &["nodes = a table: is not a key; did you mean node?"]),
    ("socket = ", &["line 1: "]),
    ("[node\ncpu = 1", &["line 1: "]),
    ("[node]\ncpu = 1\ncpu = 2", &["line 3: duplicate key cpu"]),
    (
        "[node]\nmemory = 99999999999999999999999999999999999999999",
        &["node.memory = 99999999999999999999999999999999999999999: must be 64MiB to 1024TiB"],
    ),
    ("state_dir = 2026-11-24", &["state_dir = 2026-11-24: must be an absolute path"]),
    // One mistake is one problem: what a key would clash with by its default is not said.
    ("admin = \"x\"\ncallback_ports = \"10300-10400\"", &["admin = \"x\": must be an IP address"]),
    ("\u{0}", &["line 1: "]),
    ("{\"socket\": \"/x\"}", &["line 1: "]),
    (
        "admin = 1\nstate_dir = 2\nodd = 3\n[node]\ncpu = 0\n[compute_unit]\ncpu = 0",
        &["admin = 1", "state_dir = 2", "odd = 3", "node.cpu = 0", "compute_unit.cpu = 0"],
    ),
];

/// What stands before each of [`VMS`], so that only the rest is wrong.
const VM: &str = "qmp = \"/q\"\ninformant = \"127.0.0.2:10301\"\n";
const SIZES: &str = "[min]\ncpu = 1\nmemory = \"512MiB\"\n[max]\ncpu = 4\nmemory = \"4GiB\"\n";

/// Whether [`VM`] stands before it, whether [`SIZES`] stands after it, and what must be said.
const VMS: &[(bool, &str, bool, &[&str])] = &[
    (false, "", false, &["qmp: ", "informant: ", "min.cpu: ", "max.memory: "]),
    (false, "qmp = 1\ninformant = \"127.0.0.1:1\"\n", true, &["qmp = 1: must be an absolute path"]),
    (
        false,
        "qmp = \"q\"\ninformant = \"127.0.0.1:1\"\n",
        true,
        &["qmp = \"q\": must be an absolute"],
    ),
    (
        false,
        "qmp = \"/q\"\ninformant = \"guest:1\"\n",
        true,
        &["informant = \"guest:1\": must be an IP"],
    ),
    (
        false,
        "qmp = \"/q\"\ninformant = \"127.0.0.1:0\"\n",
        true,
        &["informant = \"127.0.0.1:0\": "],
    ),
    (true, "advertise = \"0.0.0.0\"\n", true, &["advertise = \"0.0.0.0\": must be an IP"]),
    (true, "metrics = \"9100\"\n", true, &["metrics = \"9100\": must be an IP address and a port"]),
    (true, "mode = \"watch\"\n", true, &["mode = \"watch\": must be act or observe"]),
    (true, "policy = \"fastest\"\n", true, &["policy = \"fastest\": must be load-average"]),
    (true, "load_window = \"15\"\n", true, &["load_window = \"15\": must be 5s, 15s or 1m"]),
    (true, "priority = 1.5\n", true, &["priority = 1.5: must be"]),
    (true, "priority = 4294967296\n", true, &["priority = 4294967296: must be"]),
    (true, "memory_slot = 0\n", true, &["memory_slot = 0: must be"]),
    (true, "memory_slot = \"100MiB\"\n", true, &["min.memory", "max.memory"]),
    (true, "vcpu_removal = \"no\"\n", true, &["vcpu_removal = \"no\": must be true or false"]),
    (true, "cpu_limit = \"off\"\n", true, &["cpu_limit = \"off\": must be cgroup, trust or none"]),
    (true, "trust_guest_parking = true\n", true, &["trust_guest_parking = true: is not a key"]),
    (true, "priorty = 1\n", true, &["priorty = 1: is not a key"]),
    (true, "min = 1\n", false, &["min = 1: must be a table"]),
    (true, "[min]\ncpu = 1\nmemory = \"512MiB\"\n", false, &["max.cpu: ", "max.memory: "]),
    (
        true,
        "[min]\ncpu = 4\nmemory = \"4GiB\"\n[max]\ncpu = 1\nmemory = \"512MiB\"\n",
        false,
        &["max.cpu = ", "max.memory = "],
    ),
    (true, "[target]\nload_average = 0\n", true, &["target.load_average = 0: must be above 0"]),
    (true, "[target]\nload_average = 2.0\n", true, &["target.load_average = 2.0: must be above 0"]),
    (true, "[target]\nload_average = nan\n", true, &["target.load_average = NaN: must be above 0"]),
    (true, "[target]\nmemory = 1.1\n", true, &["target.memory = 1.1: must be above 0, at most 1"]),
    (true, "[target]\ncpu = 1\n", true, &["target.cpu = 1: is not a key"]),
    (true, "annotations = 1\n", false, &["annotations = 1: must be a table of texts"]),
    (true, "[annotations]\nx = 1\n", true, &["beside annotations"]),
    (
        true,
        "annotations = { \"autoscaling.neon.tech/bounds\" = '{' }\n",
        false,
        &["annotations.autoscaling.neon.tech/bounds"],
    ),
    (true, "qmp = \"/other\"\n", true, &["line 3: "]),
    (true, "\u{1}", true, &["line 3: "]),
    (true, "[[min]]\ncpu = 1\n", false, &["min = a list: must be a table"]),
];

#[test]
fn a_broken_host_file_is_refused_by_field_value_and_limit() {
    assert!(HOSTS.len() >= 30);
    for (text, expected) in HOSTS {
        let problems = HostConfig::from_text(text).expect_err(text);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        for words in *expected {
            assert!(said.iter().any(|line| line.starts_with(words)), "{text}\nsaid {said:#?}");
        }
        assert_eq!(said.len(), expected.len(), "{text}\nsaid {said:#?}");
    }
}

#[test]
fn a_broken_vm_file_is_refused_by_field_value_and_limit() {
    assert!(VMS.len() >= 30);
    for (before, text, after, expected) in VMS {
        let parts = [if *before { VM } else { "" }, text, if *after { SIZES } else { "" }];
        let text = parts.concat();
        let problems = text::parse("db1", &text).expect_err(&text);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        for words in *expected {
            assert!(said.iter().any(|line| line.contains(words)), "{text}\nsaid {said:#?}");
        }
    }
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    for stem in ["", ".", "-a", "a b", "a/b", "ä", &"x".repeat(64)] {
        let text = format!("{VM}{SIZES}");
        assert!(text::parse(stem, &text).is_err(), "{stem}");
    }
    assert!(text::parse("db1", &format!("{VM}{SIZES}")).is_ok());
}

#[test]
fn every_key_is_read_and_has_the_default_that_is_told() {
    let plain = HostConfig::from_text("").expect("everything has a default");
    for key in HOST.rows() {
        // A value that no key takes: it must be refused for its range, not as unknown.
        let text = match key.name.split_once('.') {
            Some((table, name)) => format!("[{table}]\n{name} = [[]]"),
            None => format!("{} = [[]]", key.name),
        };
        let problems = HostConfig::from_text(&text).expect_err(&key.name);
        assert_eq!(problems[0].limit, format!("must be {}", key.range), "{}", key.name);
        // The default, written out, changes nothing; some depend on the host or the VM.
        let value = match key.kind.as_str() {
            "true or false" => key.default.clone(),
            _ => format!("\"{}\"", key.default),
        };
        let written = text.replace("[[]]", &value);
        match HostConfig::from_text(&written) {
            Ok(config) => assert_eq!(config, plain, "{written}"),
            Err(_) => {
                let depends = ["the host's", "the smaller of", "cgroup where"];
                assert!(depends.iter().any(|on| key.default.starts_with(on)), "{written}");
            }
        }
    }
}
