//! Broken files: each is refused in words that name field, value and limit, all at once.

use std::path::Path;
use std::time::Duration;
use windlass_agent::Periods;
use windlass_agent_config::config::{AgentConfig, CommandLine};
use windlass_agent_config::keys::{AGENT, JSON as JSON_KEYS};
use windlass_kit::problem::Problem;
use windlass_protocol::{Bytes, MilliCpu, Target};
use windlass_vm_files::folder::Folder;

pub(crate) const PLUGIN: &str = "plugin = \"http://10.0.0.5:10299\"\n";

/// What stands behind [`PLUGIN`], and what must be said about it.
const TOML: &[(&str, &[&str])] = &[
    ("state_dir = \"x\"", &["state_dir = \"x\": must be an absolute path, other than vms_dir"]),
    ("vms_dir = 1", &["vms_dir = 1: must be an absolute path, other than state_dir"]),
    ("vms_dir = \"/var/lib/windlass-agent\"", &["vms_dir = /var/lib/windlass-agent: must not be"]),
    ("admin = \"here:1\"", &["admin = \"here:1\": must be an IP address and a port"]),
    ("admin = \"127.0.0.1:10300\"", &["admin = 127.0.0.1:10300: must not be the address of dump"]),
    ("admin = \"127.0.0.1:10310\"", &["callback_ports = 10310-11309: must not contain 10310, the"]),
    ("dump_state = \"0.0.0.0:10399\"", &["callback_ports = 10310-11309: must not contain 10399"]),
    ("dump_state_timeout = \"0s\"", &["dump_state_timeout = \"0s\": must be 100ms to 60s"]),
    ("callback_listen = \"all\"", &["callback_listen = \"all\": must be an IP address, without"]),
    ("callback_ports = \"9-8\"", &["callback_ports = \"9-8\": must be FIRST-LAST, from 1 to"]),
    ("cpu_limit = \"parking\"", &["cpu_limit = \"parking\": must be cgroup, trust or none"]),
    ("cpu_limit = 1", &["cpu_limit = 1: must be cgroup, trust or none"]),
    (
        "trust_guest_parking = false",
        &[
            "trust_guest_parking = false: is now cpu_limit: in place of true write cpu_limit = \"trust\"",
        ],
    ),
    ("compute_unit.cpu = 0", &["compute_unit.cpu = 0: must be 0.05 to 64 vCPUs"]),
    ("compute_unit.memory = 1", &["compute_unit.memory = 1: must be 1MiB to 1TiB"]),
    ("times = 1", &["times = 1: must be a table, as [times]"]),
    ("times.size = 2.001", &["times.size = 2.001: must be 100ms to 2s; hand-over between agents"]),
    ("times.size = \"2500ms\"", &["times.size = \"2500ms\": must be 100ms to 2s; hand-over"]),
    ("times.size = 0", &["times.size = 0: must be 100ms to 2s"]),
    ("times.register = 31", &["times.register = 31: must be 2s to 30s"]),
    ("times.unregister = \"x\"", &["times.unregister = \"x\": must be 100ms to 10s"]),
    ("times.health = 6", &["times.health = 6: must be 100ms to 5s"]),
    ("times.metrics = -1", &["times.metrics = -1: must be 100ms to 10s"]),
    ("times.permit = true", &["times.permit = true: must be 100ms to 2s"]),
    (
        "periods.health = 5.001",
        &["periods.health = 5.001: must be 1s to 5s; an agent acts for 8 s"],
    ),
    ("periods.health = \"8s\"", &["periods.health = \"8s\": must be 1s to 5s; an agent acts for"]),
    ("periods.metrics = 11", &["periods.metrics = 11: must be 1s to 10s; figures are old after"]),
    ("periods.metrics = \"900ms\"", &["periods.metrics = \"900ms\": must be 1s to 10s"]),
    ("periods.register_retry = 0.9", &["periods.register_retry = 0.9: must be 1s to 300s"]),
    ("periods.session_retry = 301", &["periods.session_retry = 301: must be 100ms to 300s"]),
    ("periods.session_gap = 0", &["periods.session_gap = 0: must be 100ms to 300s"]),
    ("periods.lease = 8", &["periods.lease = 8: is not a key"]),
    ("silence.after = 0", &["silence.after = 0: must be 1s to 86400s"]),
    ("silence.grace = \"x\"", &["silence.grace = \"x\": must be 1s to 86400s"]),
    (
        "times.resume = 1",
        &["times.resume = 1: is not a key; the keys are plugin, plugin_ca, plugin_token"],
    ),
    ("[billing]", &["billing.url: ", "--node-name: is needed with billing"]),
    ("socket = \"x\"", &["socket = \"x\": must be an absolute path of at most 107 bytes"]),
    ("sockets = \"/x\"", &["sockets = \"/x\": is not a key; did you mean socket?"]),
    ("node = { cpu = 1 }", &["node = a table: is not a key"]),
    ("plugin = \"http://1.1.1.1:1\"", &["line 2: "]),
    ("[bililng]\nurl = \"http://a\"", &["bililng = a table: is not a key; did you mean billing?"]),
    ("times.size = 99999999999999999999", &["times.size = 99999999999999999999: must be 100ms"]),
    (
        "admin = 1\nvms_dir = 2\nodd = 3\ntimes.size = 4",
        &["admin = 1", "vms_dir = 2", "odd = 3", "times.size = 4"],
    ),
];

/// What `plugin` is, and what must be said about it.
const PLUGINS: &[(&str, &str)] = &[
    ("", "plugin: is missing: http://IP:PORT"),
    ("plugin = 1", "plugin = 1: must be http://IP:PORT"),
    ("plugin = \"10.0.0.5:10299\"", "plugin = \"10.0.0.5:10299\": must be http://IP:PORT"),
    (
        "plugin = \"http://plugin:10299\"",
        "plugin = \"http://plugin:10299\": must be http://IP:PORT",
    ),
    (
        "plugin = \"https://10.0.0.5\"",
        "plugin = \"https://10.0.0.5\": must be http://IP:PORT or https",
    ),
    ("plugin = \"https://10.0.0.5:1\"", "plugin_ca: is needed with https://: whose certificate"),
    (
        "plugin = \"http://10.0.0.5:1\"\nplugin_token = \"/token\"",
        "plugin_token = /token: must not be there without https:// in plugin",
    ),
    (
        "plugin = \"http://10.0.0.5:1\"\nplugin_ca = \"/ca\"",
        "plugin_ca = /ca: must not be there without https:// in plugin",
    ),
    (
        "plugin = \"https://a:1\"\nplugin_ca = \"ca\"",
        "plugin_ca = \"ca\": must be an absolute path",
    ),
];

const JSON: &str = r#"{
  "scaling":   { "requestTimeoutSeconds": 10, "defaultConfig": { "loadAverageFractionTarget": 0.9 } },
  "informant": { "serverPort": 10301,
                 "retryServerMinWaitSeconds": 6, "retryServerNormalWaitSeconds": 7,
                 "registerRetrySeconds": 8, "requestTimeoutSeconds": 3, "registerTimeoutSeconds": 4,
                 "downscaleTimeoutSeconds": 1,
                 "unhealthyAfterSilenceDurationSeconds": 30, "unhealthyStartupGracePeriodSeconds": 40 },
  "metrics":   { "loadMetricPrefix": "host_", "requestTimeoutSeconds": 6, "secondsBetweenRequests": 4 },
  "scheduler": { "schedulerName": "autoscale-scheduler", "requestTimeoutSeconds": 7, "requestPort": 10299 },
  "billing":   { "url": "http://billing.example", "cpuMetricName": "effective_compute_seconds",
                 "activeTimeMetricName": "active_time_seconds", "collectEverySeconds": 4,
                 "accumulateEverySeconds": 24, "pushEverySeconds": 30,
                 "pushRequestTimeoutSeconds": 30, "maxBatchSize": 200 },
  "dumpState": { "port": 10300, "timeoutSeconds": 8 }
}"#;

/// What in [`JSON`] is replaced by what, and what must be said about it.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "\"secondsBetweenRequests\": 4",
        "\"secondsBetweenRequests\": 0",
        "metrics.secondsBetweenRequests = 0: must be a whole number from 1; more than 10 counts",
    ),
    (
        "\"registerRetrySeconds\": 8",
        "\"registerRetrySeconds\": 0",
        "informant.registerRetrySeconds = 0: must be a whole number from 1; more than 300",
    ),
    (
        "\"requestTimeoutSeconds\": 10",
        "\"requestTimeoutSeconds\": 0",
        "scaling.requestTimeoutSeconds = 0: ",
    ),
    ("0.9", "2", "scaling.defaultConfig.loadAverageFractionTarget = 2: must be from 0, below 2"),
    (
        "\"serverPort\": 10301",
        "\"serverPort\": 70000",
        "informant.serverPort = 70000: must be a port",
    ),
    (
        "\"downscaleTimeoutSeconds\": 1",
        "\"downscaleTimeoutSeconds\": -3",
        "informant.downscaleTimeoutSeconds = -3: must be a whole number from 1; more than 2 counts",
    ),
    (
        "\"registerTimeoutSeconds\": 4",
        "\"registerTimeoutSeconds\": \"4\"",
        "informant.registerTimeoutSeconds = \"4\": ",
    ),
    ("\"host_\"", "\"\"", "metrics.loadMetricPrefix = \"\": must be a text that is not"),
    (
        "\"autoscale-scheduler\"",
        "\"\"",
        "scheduler.schedulerName = \"\": must be a text that is not",
    ),
    ("\"url\": \"http://billing.example\"", "\"url\": \"\"", "billing.url = \"\": "),
    (
        "\"maxBatchSize\": 200",
        "\"maxBatchSize\": 0",
        "billing.maxBatchSize = 0: must be a whole number",
    ),
    (
        "\"port\": 10300",
        "\"port\": 10304",
        "admin = 127.0.0.1:10304: must not be the address of dump",
    ),
    (
        "\"timeoutSeconds\": 8",
        "\"timeoutSecond\": 8",
        "dumpState.timeoutSecond = 8: is not a key; did you mean dumpState.timeoutSeconds?",
    ),
    ("\"metrics\":   {", "\"metrics\":   7, \"x\": {", "metrics = 7: must be an object"),
    ("\"scaling\": ", "\"sclaing\": null, \"scaling\": ", "sclaing = null: is not a key; the keys"),
    ("\"serverPort\"", "\"typo\": null, \"serverPort\"", "informant.typo = null: is not a key"),
    ("\"billing\": ", "\"billing\": {}, \"x\": ", "billing.url: "),
];

#[test]
fn a_broken_agent_toml_is_refused_by_field_value_and_limit() {
    let command_line = CommandLine::default();
    for (text, expected) in TOML {
        let text = format!("{PLUGIN}{text}\n");
        judged(&text, AgentConfig::from_toml(&text, &command_line), expected);
    }
    for (text, expected) in PLUGINS {
        judged(text, AgentConfig::from_toml(text, &command_line), &[expected]);
    }
}

#[test]
fn a_broken_json_of_the_reference_is_refused_by_field_value_and_limit() {
    for (what, other, expected) in BROKEN {
        assert!(JSON.contains(what), "{what}");
        let text = JSON.replacen(what, other, 1);
        let said = said(&text, AgentConfig::from_json(&text, &command_line()));
        assert!(said.iter().any(|line| line.starts_with(expected)), "{what}\nsaid {said:#?}");
    }
    let all = BROKEN[..11]
        .iter()
        .fold(JSON.to_owned(), |text, (what, other, _)| text.replacen(what, other, 1));
    assert_eq!(said(&all, AgentConfig::from_json(&all, &command_line())).len(), 11, "all at once");
    let nowhere = said(JSON, AgentConfig::from_json(JSON, &CommandLine::default()));
    let unnamed = "--node-name: is needed with billing: events say where they are from";
    assert_eq!(
        nowhere,
        ["--plugin: is needed: this file does not say where the plugin is", unnamed]
    );
}

#[test]
fn events_need_a_source_and_that_is_said_with_everything_else() {
    let text = format!(
        "{PLUGIN}admin = 1\n[billing]\nurl = \"http://10.0.0.7\"\npush_every_seconds = 0\n"
    );
    let named =
        |name: Option<&str>| CommandLine { node_name: name.map(str::to_owned), ..command_line() };
    let others = ["admin = 1: must be", "billing.push_every_seconds = 0: must be"];
    let all = |first: &'static str| [first, others[0], others[1]];
    for (name, said) in [
        (None, "--node-name: is needed with billing: events say where they are from"),
        (Some(""), "--node-name = \"\": must be 1 to 253 letters, digits and punctuation of ASCII"),
        (Some("node 1"), "--node-name = \"node 1\": must be 1 to 253"),
    ] {
        judged(&text, AgentConfig::from_toml(&text, &named(name)), &all(said));
    }
    judged(&text, AgentConfig::from_toml(&text, &named(Some("n1"))), &others);
    let unbilled =
        AgentConfig::from_toml(PLUGIN, &named(Some("node 1"))).expect("nothing is billed");
    assert_eq!(unbilled.source, None);
}

#[test]
fn files_mean_what_they_say() {
    let config = AgentConfig::from_toml(PLUGIN, &CommandLine::default()).expect("a smallest file");
    assert_eq!(config.plugin.to_string(), "http://10.0.0.5:10299/");
    assert_eq!((config.basics.admin.port(), config.basics.callback_ports), (10304, 10310..=11309));
    assert_eq!(
        config.basics.dump_state.map(|(at, _)| at.to_string()),
        Some("127.0.0.1:10300".into())
    );
    assert!(config.basics.callback_listen.is_loopback());
    let seconds = |seconds| Duration::from_secs(seconds);
    let usual = config.times;
    assert_eq!(
        (usual.register, usual.unregister, usual.health),
        (seconds(2), seconds(2), seconds(1))
    );
    assert_eq!((usual.size, usual.metrics, usual.permit), (seconds(2), seconds(2), seconds(2)));

    assert_eq!(config.periods, Periods { metrics: seconds(1), ..Periods::REFERENCE });
    assert_eq!((config.silence.after, config.silence.grace), (seconds(20), seconds(20)));

    let config = AgentConfig::from_json(JSON, &command_line()).expect("the reference's example");
    let Periods { health, metrics, register_retry, session_retry, session_gap } = config.periods;
    assert_eq!((health, metrics, register_retry), (seconds(5), seconds(4), seconds(8)));
    assert_eq!((session_retry, session_gap), (seconds(7), seconds(6)));
    assert_eq!((config.silence.after, config.silence.grace), (seconds(30), seconds(40)));
    assert_eq!(config.plugin.to_string(), "http://10.0.0.6:1/");
    assert_eq!(config.basics.dump_state, Some((([0, 0, 0, 0], 10300).into(), seconds(8))));
    let times = config.times;
    assert_eq!(
        (times.register, times.unregister, times.health),
        (seconds(4), seconds(2), seconds(3))
    );
    // Seven are said; hand-over counts on no more than two.
    assert_eq!((times.size, times.metrics, times.permit), (seconds(1), seconds(6), seconds(2)));
    for absent in ["{}", r#"{"billing":null,"dumpState":null,"scaling":{"defaultConfig":null}}"#] {
        let config = AgentConfig::from_json(absent, &command_line()).expect(absent);
        assert_eq!((config.billing, config.basics.dump_state), (None, None), "{absent}");
    }
    let shown =
        AgentConfig::from_json("{\"dumpState\":{}}", &command_line()).expect("it has defaults");
    assert_eq!(shown.basics.dump_state, Some((([0, 0, 0, 0], 10300).into(), seconds(5))));
    let least =
        AgentConfig::from_json("{}", &command_line()).expect("what is missing has a default");
    assert_eq!((least.basics.dump_state, least.times), (None, usual));
    assert_eq!(least.periods, Periods::REFERENCE);
    let text = format!(
        "{PLUGIN}[periods]\nhealth = 2\nmetrics = \"2500ms\"\nregister_retry = 60\n\
         session_retry = \"1s\"\nsession_gap = \"500ms\"\n[silence]\nafter = 60\ngrace = 90\n"
    );
    let config =
        AgentConfig::from_toml(&text, &CommandLine::default()).expect("a file with periods");
    let millis = Duration::from_millis;
    assert_eq!((config.periods.health, config.periods.metrics), (seconds(2), millis(2500)));
    let Periods { register_retry, session_retry, session_gap, .. } = config.periods;
    assert_eq!(
        (register_retry, session_retry, session_gap),
        (seconds(60), seconds(1), millis(500))
    );
    assert_eq!((config.silence.after, config.silence.grace), (seconds(60), seconds(90)));
}

#[test]
fn the_node_of_a_cluster_is_what_the_command_line_or_the_file_says() {
    let read = |table: &str, line: &CommandLine| {
        AgentConfig::from_toml(&format!("{PLUGIN}{table}"), line).unwrap().kubernetes
    };
    let (none, named) = (
        CommandLine::default(),
        CommandLine { node_name: Some("two".to_owned()), ..CommandLine::default() },
    );
    assert_eq!(read("", &named), None, "without the table VMs are declared by files");
    let node = |table: &str, line: &CommandLine| read(table, line).map(|it| it.node);
    assert_eq!(node("[kubernetes]", &named).as_deref(), Some("two"));
    assert_eq!(node("[kubernetes]\nnode = \"one\"", &none).as_deref(), Some("one"));
    assert_eq!(node("[kubernetes]\nnode = \"one\"", &named).as_deref(), Some("two"));
    let with_billing = "[kubernetes]\nnode = \"one\"\n[billing]\nurl = \"http://127.0.0.1:9\"";
    let problems = AgentConfig::from_toml(&format!("{PLUGIN}{with_billing}"), &named);
    let problems: Vec<String> = problems.unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["billing: must not be there with [kubernetes]: nothing is billed there yet"]
    );
}

#[test]
fn what_the_reference_takes_is_taken_and_said_if_it_counts_as_something_else() {
    let read = |what: &str, other: &str| {
        assert!(JSON.contains(what), "{what}");
        let text = JSON.replacen(what, other, 1);
        let config = AgentConfig::from_json(&text, &command_line()).expect(other);
        // The example's own seven seconds are always among them.
        let said = config.adjusted.iter().map(ToString::to_string);
        let own = "scheduler.requestTimeoutSeconds = 7: counts as 2, the most that is taken";
        let (own, said): (Vec<_>, Vec<_>) = said.partition(|said| said == own);
        assert_eq!(own.len(), usize::from(!what.contains(": 7")), "{other}");
        (config, said)
    };
    for (what, other, said) in [
        ("\"downscaleTimeoutSeconds\": 1", 3, "informant.downscaleTimeoutSeconds = 3: counts as 2"),
        ("\"secondsBetweenRequests\": 4", 15, "metrics.secondsBetweenRequests = 15: counts as 10"),
        ("\"requestTimeoutSeconds\": 3", 6, "informant.requestTimeoutSeconds = 6: counts as 5"),
        (
            "\"registerTimeoutSeconds\": 4",
            31,
            "informant.registerTimeoutSeconds = 31: counts as 30",
        ),
        ("\"registerRetrySeconds\": 8", 301, "informant.registerRetrySeconds = 301: counts as 300"),
        ("\"requestTimeoutSeconds\": 6", 11, "metrics.requestTimeoutSeconds = 11: counts as 10"),
        ("\"timeoutSeconds\": 8", 61, "dumpState.timeoutSeconds = 61: counts as 60"),
    ] {
        let key = what.split(':').next().expect("a key");
        let (config, found) = read(what, &format!("{key}: {other}"));
        let said = format!("{said}, the most that is taken");
        assert_eq!(found, [said], "{what}");
        let all = (config.times, config.periods);
        assert!(all.0.size <= Duration::from_secs(2) && all.1.metrics <= Periods::LONGEST_METRICS);
    }
    for (what, other) in [
        ("\"requestTimeoutSeconds\": 10", "\"requestTimeoutSeconds\": 999999"),
        ("\"requestTimeoutSeconds\": 7", "\"requestTimeoutSeconds\": 2"),
    ] {
        assert_eq!(read(what, other).1, [""; 0], "{other}");
    }
    let (config, said) = read("\"requestTimeoutSeconds\": 6", "\"requestTimeoutSeconds\": 0");
    let text = "metrics.requestTimeoutSeconds = 0: counts as 1, the least that is taken".to_owned();
    assert_eq!((config.times.metrics, said), (Duration::from_secs(1), vec![text]));
    let (config, said) = read("\"registerTimeoutSeconds\": 4", "\"registerTimeoutSeconds\": 1");
    let text =
        "informant.registerTimeoutSeconds = 1: counts as 2, the least that is taken".to_owned();
    assert_eq!((config.times.register, said), (Duration::from_secs(2), vec![text]));
    let (_, said) = read("\"host_\"", "\"vm_\"");
    assert!(said[0].starts_with("metrics.loadMetricPrefix = \"vm_\": is not read;"), "{said:?}");
    assert_eq!(read("\"host_\"", "\"node_\"").1, [""; 0]);

    let (config, said) = read("Target\": 0.9", "Target\": 0.7");
    assert_eq!((config.usual.target.load_average, said), (0.7, vec![]));
    assert_eq!(config.usual.target.memory, Target::default().memory);
    let (config, said) = read("Target\": 0.9", "Target\": 0");
    assert_eq!(config.usual.target, Target::default());
    assert!(said[0].contains("loadAverageFractionTarget = 0: counts as 0.9"), "{said:?}");
}

#[test]
fn a_vm_file_without_a_target_aims_at_what_the_reference_s_default_says() {
    let text = JSON.replacen("Target\": 0.9", "Target\": 0.7", 1);
    let config = AgentConfig::from_json(&text, &command_line()).expect("a valid file");
    let plain = "qmp = \"/q\"\ninformant = \"10.0.0.9:10301\"\n";
    let sizes = "min = { cpu = 1, memory = \"256MiB\" }\nmax = { cpu = 2, memory = \"1GiB\" }\n";
    let annotated = "[annotations]\n\"windlass.dev/bounds\" = '{\"min\":{\"cpu\":1,\"mem\":\"256Mi\"},\
                     \"max\":{\"cpu\":2,\"mem\":\"1Gi\"}}'\n";
    let folder = Folder::with_usual(Path::new("/vms.d"), config.usual);
    for (sizes, more, aim) in [
        (sizes, "", 0.7),
        (sizes, "target.load_average = 0.8\n", 0.8),
        (sizes, "target.memory = 0.5\n", 0.7),
        (annotated, "", 0.7),
        (
            annotated,
            "\"autoscaling.neon.tech/config\" = '{\"loadAverageFractionTarget\":0.6}'\n",
            0.6,
        ),
    ] {
        let file = folder.check("a", &format!("{plain}{sizes}{more}")).expect(more);
        assert_eq!(file.info.target.load_average, aim, "{sizes}{more}");
    }
}

#[test]
fn what_the_command_line_says_wins() {
    let pod_ip = Some("192.0.2.7".parse().expect("an address"));
    let command_line = CommandLine {
        state_dir: Some("/s".into()),
        vms_dir: Some("/v".into()),
        pod_ip,
        ..command_line()
    };
    let text = format!("{PLUGIN}state_dir = \"/a\"\nvms_dir = \"/b\"\n");
    for text in [text.as_str(), ""] {
        let config = AgentConfig::from_toml(text, &command_line).expect(text);
        assert_eq!(config.plugin.to_string(), "http://10.0.0.6:1/");
        assert_eq!(config.basics.state_dir.to_str(), Some("/s"));
        assert_eq!(config.basics.vms_dir.to_str(), Some("/v"));
        assert_eq!(Some(config.basics.callback_listen), pod_ip);
    }
    let admin = Some("0.0.0.0:9100".parse().expect("an address"));
    let unit_cpu = Some(MilliCpu::from_milli(250));
    let command_line = CommandLine { admin, unit_cpu, ..command_line };
    let toml = "admin = \"127.0.0.1:1\"\n[compute_unit]\ncpu = 2\nmemory = \"512MiB\"\n";
    let config = AgentConfig::from_toml(toml, &command_line).expect(toml);
    assert_eq!(
        (Some(config.basics.admin), config.basics.unit.usual().to_string().as_str()),
        (admin, "0.25 vCPU / 512MiB")
    );
    let command_line = CommandLine { unit_memory: Some(Bytes::from_mib(256)), ..command_line };
    let config = AgentConfig::from_json(JSON, &command_line).expect("the reference's example");
    assert_eq!(
        (Some(config.basics.admin), config.basics.unit.usual().to_string().as_str()),
        (admin, "0.25 vCPU / 256MiB")
    );
    // The address of the file is not in the way of what replaces it.
    let text = JSON.replacen("\"port\": 10300", "\"port\": 10304", 1);
    assert!(AgentConfig::from_json(&text, &command_line).is_ok());
    let clash = CommandLine {
        admin: Some("0.0.0.0:10300".parse().expect("an address")),
        ..command_line.clone()
    };
    let said = said("", AgentConfig::from_json(JSON, &clash));
    assert_eq!(said, ["admin = 0.0.0.0:10300: must not be the address of dump_state"]);
    let said = self::said("", AgentConfig::from_toml("plugin = 1", &command_line));
    assert_eq!(said.len(), 1, "what is overruled has to be right all the same");
}

#[test]
fn every_key_is_read() {
    for key in AGENT.rows() {
        let text = format!("{} = [[]]\n", key.name);
        let problems = AgentConfig::from_toml(&text, &command_line()).expect_err(&text);
        has(&problems, &key.name, &key.range);
    }
    for key in JSON_KEYS.rows() {
        let text = key
            .name
            .rsplit('.')
            .fold("{\"x\":1}".to_owned(), |inner, name| format!("{{\"{name}\":{inner}}}"));
        let problems = AgentConfig::from_json(&text, &command_line()).expect_err(&text);
        has(&problems, &key.name, &key.range);
    }
}

fn command_line() -> CommandLine {
    let plugin = Some("http://10.0.0.6:1".parse().expect("an address"));
    CommandLine { plugin, node_name: Some("n1".to_owned()), ..CommandLine::default() }
}

fn has(problems: &[Problem], field: &str, range: &str) {
    let limit = format!("must be {range}");
    let found = problems.iter().any(|problem| problem.field == field && problem.limit == limit);
    assert!(found, "{field} is not read; said {problems:#?}");
}

fn said(text: &str, read: Result<AgentConfig, Vec<Problem>>) -> Vec<String> {
    read.expect_err(text).iter().map(ToString::to_string).collect()
}

pub(crate) fn judged(text: &str, read: Result<AgentConfig, Vec<Problem>>, expected: &[&str]) {
    let said = said(text, read);
    for words in expected {
        assert!(said.iter().any(|line| line.starts_with(words)), "{text}\nsaid {said:#?}");
    }
    assert_eq!(said.len(), expected.len(), "{text}\nsaid {said:#?}");
}
