//! Broken files: each is refused in words that name field, value and limit, all at once.

use windlass_kit::problem::Problem;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::keys::{
    BOOKS, JSON as JSON_KEYS, LISTED, NODE as NODE_KEYS, OVERRIDE, PLUGIN, POOL,
};
use windlass_plugin_config::lists::Lists;
use windlass_protocol::config::Row;
use windlass_protocol::vm_file::VM as VM_KEYS;
use windlass_protocol::{Bytes, VmInfo, VmName};

const NODE: &str = "[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"4GiB\"\n";
const VM: &str = "[[vm]]\nname = \"a\"\nnode = \"n\"\nmin = { cpu = 1, memory = \"256MiB\" }\n\
    max = { cpu = 4, memory = \"1GiB\" }\n";

/// What stands before [`NODE`] and [`VM`], and what must be said about it.
const BEFORE: &[(&str, &[&str])] = &[
    ("listen = \"localhost:1\"\n", &["listen = \"localhost:1\": must be an IP address and a port"]),
    ("listen = 10299\n", &["listen = 10299: must be an IP address and a port"]),
    ("dump_state = \"\"\n", &["dump_state = \"\": must be an IP address and a port"]),
    ("dump_state_timeout = 0\n", &["dump_state_timeout = 0: must be 100ms to 60s"]),
    ("dump_state_timeout = \"5m\"\n", &["dump_state_timeout = \"5m\": must be 100ms to 60s"]),
    ("dump_state_timeout = 61\n", &["dump_state_timeout = 61: must be 100ms to 60s"]),
    ("admin = \"[::1]\"\n", &["admin = \"[::1]\": must be an IP address and a port"]),
    (
        "admin = \"127.0.0.1:10299\"\n",
        &["admin = 127.0.0.1:10299: must not be the address of listen"],
    ),
    (
        "dump_state = \"0.0.0.0:10305\"\n",
        &["admin = 127.0.0.1:10305: must not be the address of dump"],
    ),
    ("compute_unit = 1\n", &["compute_unit = 1: must be a table, as [compute_unit]"]),
    ("compute_unit = { cpu = 0 }\n", &["compute_unit.cpu = 0: must be 0.05 to 64 vCPUs"]),
    (
        "compute_unit = { memory = \"1GB\" }\n",
        &["compute_unit.memory = \"1GB\": GB is no unit of memory here; write GiB"],
    ),
    ("compute_unit = { memory = 1 }\n", &["compute_unit.memory = 1: must be 1MiB to"]),
    ("listn = \"0.0.0.0:1\"\n", &["listn = \"0.0.0.0:1\": is not a key; did you mean listen?"]),
    ("nodes = []\n", &["nodes = a list: is not a key"]),
    ("listen = \n", &["line 1: "]),
    (
        "listen = 1\nadmin = 2\nodd = 3\ndump_state_timeout = -1\n",
        &["listen = 1", "admin = 2", "dump_state_timeout = -1", "odd = 3"],
    ),
];

/// What stands after [`NODE`], and what must be said about it.
const AFTER: &[(&str, &[&str])] = &[
    (
        "[[node]]\n",
        &["node[#2].name: is missing", "node[#2].cpu: is missing", "node[#2].memory: is"],
    ),
    (
        "[[node]]\nname = \"n\"\ncpu = 1\nmemory = \"1GiB\"\n",
        &["node[n].name = n: is listed already"],
    ),
    (
        "[[node]]\nname = \"a b\"\ncpu = 1\nmemory = \"1GiB\"\n",
        &["node[#2].name = \"a b\": must be 1"],
    ),
    (
        "[[node]]\nname = \"m\"\ncpu = 0\nmemory = 1\n",
        &["node[m].cpu = 0: ", "node[m].memory = 1: "],
    ),
    (
        "[[node]]\nname = \"m\"\ncpu = 1\nmemory = \"1GiB\"\nroom = 1\n",
        &["node[m].room = 1: is not a key; the keys are name, cpu, memory"],
    ),
    ("vm = 1\n", &["node[n].vm = 1: is not a key"]),
    ("[vm]\nname = \"a\"\n", &["vm = a table: must be any number of [[vm]]"]),
    (
        "[[vm]]\n",
        &[
            "vm[#1].name: is missing",
            "vm[#1].node: is missing",
            "vm[#1].min.cpu: is missing",
            "vm[#1].min.memory: is missing",
            "vm[#1].max.cpu: is missing",
            "vm[#1].max.memory: is missing",
        ],
    ),
    ("TWICE", &["vm[a].name = default/a: is listed already"]),
    ("ELSEWHERE", &["vm[a].node = m: is no [[node]]; there are n"]),
    ("LESS", &["vm[a].max.cpu = 1: is below the minimum of 4"]),
    ("ODD", &["vm[a].max.memory = \"1000MiB\": is not a multiple of 128MiB; 1GiB is"]),
    ("QMP", &["vm[a].qmp = \"/q\": is not a key; the keys are namespace, name, node, priority"]),
    ("SLOT", &["vm[a].memory_slot = \"1KiB\": must be 1MiB to 64GiB, in whole MiB"]),
    ("PRIORITY", &["vm[a].priority = 0.5: must be a whole number from -2147483648 to 2147483647"]),
    ("MOVING", &["vm[a].moving = \"yes\": must be true or false"]),
    ("SPACE", &["vm[a].namespace = \"\": must be 1 to 253"]),
];

#[test]
fn a_broken_plugin_toml_is_refused_by_field_value_and_limit() {
    for (text, expected) in BEFORE {
        let text = format!("{text}{NODE}{VM}");
        judged(&text, PluginConfig::from_toml(&text, None).map(drop), expected);
    }
    for (text, expected) in AFTER {
        let text = format!("{NODE}{}", after(text));
        judged(&text, PluginConfig::from_toml(&text, None).map(drop), expected);
        judged(&text, Lists::from_text(&text, VmInfo::DEFAULT_MEMORY_SLOT).map(drop), expected);
    }
    judged(
        "",
        PluginConfig::from_toml("", None).map(drop),
        &["node: is missing: one [[node]] or more"],
    );
}

#[test]
fn a_plugin_toml_means_what_it_says() {
    let (config, lists) = PluginConfig::from_toml(&format!("{NODE}{VM}"), None).unwrap();
    assert_eq!(config.listen.to_string(), "0.0.0.0:10299");
    assert_eq!(config.admin.to_string(), "127.0.0.1:10305");
    assert_eq!(config.dump_state.unwrap().0.to_string(), "127.0.0.1:10298");
    assert_eq!(config.rules.of("n").unit.to_string(), "1 vCPU / 1GiB");
    assert_eq!(lists.nodes["n"].to_string(), "4 vCPU / 4GiB");
    let vm = &lists.vms[&VmName::on_host("a")];
    assert_eq!(vm.bounds.max.to_string(), "4 vCPU / 1GiB");
    assert_eq!((vm.memory_slot, vm.priority), (Bytes::from_mib(128), 0));
    assert_eq!(vm.record().grain.cpu.milli(), 1000);
    assert!(!vm.moving);
    let (_, lists) = PluginConfig::from_toml(&format!("{NODE}{VM}moving = true\n"), None).unwrap();
    assert!(lists.vms[&VmName::on_host("a")].moving);
}

#[test]
fn an_amount_of_the_reference_is_a_text_or_a_number_of_bytes() {
    for amount in ["\"1Gi\"", "1073741824"] {
        let config =
            PluginConfig::from_json(&format!("{{ \"memBlockSize\": {amount} }}"), None).unwrap();
        assert_eq!(config.slot, Bytes::from_gib(1), "{amount}");
    }
}

const JSON: &str = r#"{ "memBlockSize": "1Gi",
  "nodeDefaults": { "cpu": { "watermark": 0.7, "system": "500m" },
                    "memory": { "watermark": 0.7, "system": "0.5Gi" },
                    "computeUnit": { "vCPUs": 0.25, "mem": 1 } },
  "nodeOverrides": [ { "nodes": ["node-a","node-b"],
                       "config": { "cpu": {"watermark":0.9,"system":"1"},
                                   "memory": {"watermark":0.9,"system":"2Gi"},
                                   "computeUnit": {"vCPUs":0.5,"mem":2} } } ],
  "schedulerName": "autoscale-scheduler",
  "migrationDeletionRetrySeconds": 5,
  "doMigration": false,
  "k8sNodeGroupLabel": "eks.amazonaws.com/nodegroup",
  "dumpState": { "port": 10298, "timeoutSeconds": 5 } }"#;

/// What in [`JSON`] is replaced by what, and what must be said about it.
const BROKEN: &[(&str, &str, &[&str])] = &[
    ("\"1Gi\"", "0", &["memBlockSize = 0: must be an amount of memory from 1Mi"]),
    ("\"1Gi\"", "\"1.5\"", &["memBlockSize = \"1.5\": must be an amount of memory"]),
    (
        "\"watermark\": 0.7, \"system\": \"500m\"",
        "\"watermark\": 1.1",
        &["nodeDefaults.cpu.watermark = 1.1: must be above 0, at most 1"],
    ),
    ("\"500m\"", "0", &["nodeDefaults.cpu.system = 0: must be an amount of CPU above 0"]),
    ("\"0.5Gi\"", "\"half\"", &["nodeDefaults.memory.system = \"half\": must be an amount of"]),
    ("\"vCPUs\": 0.25", "\"vCPUs\": 0", &["nodeDefaults.computeUnit.vCPUs = 0: must be 0.05 to"]),
    (
        "0.25, \"mem\": 1",
        "0.25, \"mem\": 0",
        &["nodeDefaults.computeUnit.mem = 0: must be a whole"],
    ),
    ("[\"node-a\",\"node-b\"]", "[]", &["nodeOverrides[0].nodes = a list: must be a list of one"]),
    (
        "\"system\":\"2Gi\"",
        "\"sytem\":\"2Gi\"",
        &[
            "nodeOverrides[0].config.memory.sytem = \"2Gi\": is not a key; did you mean config.memory.system?",
        ],
    ),
    (
        "\"autoscale-scheduler\"",
        "\"\"",
        &["schedulerName = \"\": must be a text that is not empty"],
    ),
    (
        "\"migrationDeletionRetrySeconds\": 5",
        "\"migrationDeletionRetrySeconds\": 0",
        &["migrationDeletionRetrySeconds = 0: must be a whole number from 1"],
    ),
    ("\"doMigration\": false", "\"doMigration\": 0", &["doMigration = 0: must be true or false"]),
    ("\"port\": 10298", "\"port\": 0", &["dumpState.port = 0: must be a port from 1 to 65535"]),
    ("\"timeoutSeconds\": 5", "\"timeoutSeconds\": 0", &["dumpState.timeoutSeconds = 0: must be"]),
    ("\"k8sNodeGroupLabel\"", "\"ignoreNamespaces\"", &["ignoreNamespaces = \"eks.amazonaws.com"]),
    (
        "{ \"memBlockSize\"",
        "{ \"a\": 1, \"b\": [2], \"memBlockSize\"",
        &["a = 1: is", "b = a list: is"],
    ),
    (
        "\"doMigration\"",
        "\"doMigrations\": null, \"doMigration\"",
        &["doMigrations = null: is not a key; the keys are "],
    ),
    ("}", "", &["line 13: "]),
];

#[test]
fn the_address_of_the_command_line_wins_and_no_address_of_a_file_is_in_its_way() {
    let admin = "0.0.0.0:9100".parse().unwrap();
    let text = format!("admin = \"127.0.0.1:1\"\n{NODE}{VM}");
    let (config, _) = PluginConfig::from_toml(&text, Some(admin)).unwrap();
    assert_eq!(config.admin, admin);
    assert_eq!(PluginConfig::from_json(JSON, Some(admin)).unwrap().admin, admin);
    let text = JSON.replace("\"port\": 10298", "\"port\": 10305");
    assert!(PluginConfig::from_json(&text, None).is_err());
    assert!(PluginConfig::from_json(&text, Some(admin)).is_ok());
    let clash = "127.0.0.1:10299".parse().unwrap();
    judged(
        "",
        PluginConfig::from_json(JSON, Some(clash)).map(drop),
        &["admin = 127.0.0.1:10299: must not be the address of listen"],
    );
}

#[test]
fn a_broken_json_of_the_reference_is_refused_by_field_value_and_limit() {
    PluginConfig::from_json(JSON, None).unwrap();
    for (what, other, expected) in BROKEN {
        assert!(JSON.contains(what), "{what}");
        let text = if *what == "}" {
            JSON.trim_end_matches('}').to_owned()
        } else {
            JSON.replacen(what, other, 1)
        };
        judged(&text, PluginConfig::from_json(&text, None).map(drop), expected);
    }
    // What is missing takes its default.
    let config = PluginConfig::from_json("{}", None).unwrap();
    assert_eq!(config.rules.of("x").unit.to_string(), "1 vCPU / 1GiB");
    assert_eq!((config.slot, config.dump_state), (VmInfo::DEFAULT_MEMORY_SLOT, None));
}

#[test]
fn the_reference_s_json_means_what_it_says() {
    // Keys match whatever their case, and null is absent, as Go reads them.
    let other = JSON.replace("schedulerName", "SCHEDULERNAME").replace("false", "null");
    for text in [JSON, &other] {
        let config = PluginConfig::from_json(text, None).unwrap();
        assert_eq!(config.dump_state.unwrap().0.to_string(), "0.0.0.0:10298");
        assert_eq!(config.slot, Bytes::from_gib(1));
        let (usual, named) = (config.rules.of("x"), config.rules.of("node-b"));
        assert_eq!(usual.unit.to_string(), "0.25 vCPU / 1GiB");
        assert_eq!(usual.system.to_string(), "0.5 vCPU / 512MiB");
        assert_eq!(named.unit.to_string(), "0.5 vCPU / 2GiB");
        assert_eq!(named.system.to_string(), "1 vCPU / 2GiB");
        assert!((named.watermark.0 - 0.9).abs() < 1e-9);
        // A node that would have nothing left is named.
        let small = "[[node]]\nname = \"node-a\"\ncpu = 1\nmemory = \"4GiB\"\n";
        let lists = Lists::from_text(small, config.slot).unwrap();
        let said = config.rooms(&lists).unwrap_err()[0].to_string();
        let words = "node[node-a] = 1 vCPU / 4GiB: must be more than the 1 vCPU / 2GiB";
        assert!(said.starts_with(words), "{said}");
    }
}

/// What later releases of the reference come with.
const LATER: &[&str] = &[
    r#"{ "memBlockSize": "1Gi",
      "nodeDefaults": { "cpu": { "watermark": 0.9 }, "memory": { "watermark": 0.9 },
        "computeUnit": { "vCPUs": 0.25, "mem": 1 },
        "minUsageScore": 0.5, "maxUsageScore": 0, "scorePeak": 0.8 },
      "nodeOverrides": [], "schedulerName": "autoscale-scheduler",
      "dumpState": { "port": 10298, "timeoutSeconds": 5 },
      "migrationDeletionRetrySeconds": 5, "doMigration": false }"#,
    r#"{ "computeUnit": { "vCPUs": 0.25, "mem": "1Gi" },
      "nodeConfig": { "cpu": { "watermark": 0.9 }, "memory": { "watermark": 0.9 },
        "minUsageScore": 0.5, "maxUsageScore": 0, "scorePeak": 0.8 },
      "schedulerName": "autoscale-scheduler", "eventQueueWorkers": 64,
      "startupEventHandlingTimeoutSeconds": 15, "ignoreNamespaces": ["overprovisioning"],
      "dumpState": { "port": 10298, "timeoutSeconds": 5 },
      "migrationDeletionRetrySeconds": 5, "doMigration": true, "randomizeScores": true }"#,
    r#"{ "watermark": 0.9, "computeUnit": { "vCPUs": 0.25 },
      "scoring": { "minUsageScore": 0.5, "maxUsageScore": 0, "scorePeak": 0.8, "randomize": true },
      "schedulerName": "autoscale-scheduler", "reconcileWorkers": 16,
      "logSuccessiveFailuresThreshold": 10, "startupEventHandlingTimeoutSeconds": 15,
      "patchRetryWaitSeconds": 1, "k8sCRUDTimeoutSeconds": 1,
      "nodeMetricLabels": { "availability_zone": "topology.kubernetes.io/zone" },
      "ignoredNamespaces": ["overprovisioning"] }"#,
];

#[test]
fn the_json_of_later_releases_is_read() {
    for text in LATER {
        let rule = PluginConfig::from_json(text, None).expect(text).rules.of("x");
        assert_eq!(rule.unit.to_string(), "0.25 vCPU / 1GiB", "{text}");
        assert!((rule.watermark.0 - 0.9).abs() < 1e-9 && (rule.watermark.1 - 0.9).abs() < 1e-9);
    }
}

#[test]
fn keys_that_a_vm_file_has_too_mean_the_same_there() {
    let vm_keys = VM_KEYS.rows();
    for key in LISTED.rows() {
        let Some(same) = vm_keys.iter().find(|other| other.name == key.name) else { continue };
        assert_eq!(same.range, key.range, "{}", key.name);
    }
}

#[test]
fn every_key_is_read() {
    let toml = |key: &Row, head: &str| match key.name.split_once('.') {
        Some((table, name)) => format!("{head}{table} = {{ {name} = [[]] }}\n"),
        None => format!("{head}{} = [[]]\n", key.name),
    };
    for (keys, head, place) in [
        (PLUGIN.rows(), "", ""),
        (BOOKS.rows(), "", ""),
        (NODE_KEYS.rows(), "[[node]]\n", "node[#1]."),
        (LISTED.rows(), "[[vm]]\n", "vm[#1]."),
        (POOL.rows(), "[[kubernetes.pool]]\n", "kubernetes.pool[#1]."),
    ] {
        for key in &keys {
            let text = toml(key, head);
            let problems = match keys.len() == BOOKS.rows().len() {
                true => Lists::from_text(&text, VmInfo::DEFAULT_MEMORY_SLOT).unwrap_err(),
                false => PluginConfig::from_toml(&text, None).unwrap_err(),
            };
            has(&text, &problems, &format!("{place}{}", key.name), &key.range);
        }
    }
    for (keys, place) in [(JSON_KEYS, ""), (OVERRIDE, "nodeOverrides[0].")] {
        for key in keys.rows() {
            let mut text = key
                .name
                .rsplit('.')
                .fold("{\"x\":1}".to_owned(), |inner, name| format!("{{\"{name}\":{inner}}}"));
            if !place.is_empty() {
                text = format!("{{\"nodeOverrides\":[{text}]}}");
            }
            let problems = PluginConfig::from_json(&text, None).unwrap_err();
            has(&text, &problems, &format!("{place}{}", key.name), &key.range);
        }
    }
}

fn has(text: &str, problems: &[Problem], field: &str, range: &str) {
    let limit = format!("must be {range}");
    let found = problems.iter().any(|problem| problem.field == field && problem.limit == limit);
    assert!(found, "{text}\n{field} is not read; said {problems:#?}");
}

fn after(what: &str) -> String {
    match what {
        "TWICE" => format!("{VM}{VM}"),
        "ELSEWHERE" => VM.replace("\"n\"", "\"m\""),
        "LESS" => VM
            .replace("min = { cpu = 1", "min = { cpu = 4")
            .replace("{ cpu = 4, memory = \"1G", "{ cpu = 1, memory = \"1G"),
        "ODD" => VM.replace("1GiB", "1000MiB"),
        "QMP" => format!("{VM}qmp = \"/q\"\n"),
        "SLOT" => format!("{VM}memory_slot = \"1KiB\"\n"),
        "PRIORITY" => format!("{VM}priority = 0.5\n"),
        "MOVING" => format!("{VM}moving = \"yes\"\n"),
        "SPACE" => format!("{VM}namespace = \"\"\n"),
        other => other.to_owned(),
    }
}

pub(crate) fn judged(text: &str, read: Result<(), Vec<Problem>>, expected: &[&str]) {
    let problems = read.expect_err(text);
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for words in expected {
        assert!(said.iter().any(|line| line.starts_with(words)), "{text}\nsaid {said:#?}");
    }
    assert_eq!(said.len(), expected.len(), "{text}\nsaid {said:#?}");
}
