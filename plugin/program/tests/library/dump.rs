//! The state in the reference's shape: names, and what is a number, a text, or null.

#![expect(clippy::unwrap_used, reason = "tests")]

use axum::body::Bytes;
use axum::http::Request;
use serde_json::{Value, json};
use windlass_kit::clock::Clock;
use windlass_plugin::Endpoint;
use windlass_plugin::http::read;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::lists::Lists;
use windlass_plugin_program::Plugin;
use windlass_plugin_program::dump::dump;
use windlass_protocol::Moment;

/// As the reference's types read it, and write it again with what they add.
const JSON: &str = r#"{ "memBlockSize": "1Gi",
  "nodeDefaults": { "cpu": { "watermark": 0.7, "system": "500m" },
                    "memory": { "watermark": 0.7, "system": "0.5Gi" },
                    "computeUnit": { "vCPUs": 0.25, "mem": 1 } },
  "nodeOverrides": [ { "nodes": ["a"],
                       "config": { "cpu": { "watermark": 0.9, "system": 1 },
                                   "memory": { "watermark": 0.9, "system": "2Gi" },
                                   "computeUnit": { "vCPUs": 1, "mem": 4 } } } ],
  "schedulerName": "autoscale-scheduler",
  "migrationDeletionRetrySeconds": 5,
  "doMigration": false,
  "k8sNodeGroupLabel": "eks.amazonaws.com/nodegroup",
  "dumpState": { "port": 10298, "timeoutSeconds": 5 } }"#;

const LISTS: &str = "\
[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"8GiB\"\n\
[[vm]]\nname = \"quiet\"\nnode = \"n\"\n\
min = { cpu = 0.25, memory = \"1GiB\" }\nmax = { cpu = 1, memory = \"4GiB\" }\n\
[[vm]]\nname = \"spoken\"\nnode = \"n\"\n\
min = { cpu = 0.25, memory = \"1GiB\" }\nmax = { cpu = 1, memory = \"4GiB\" }\n";

#[test]
fn the_configuration_is_written_as_the_reference_writes_it() {
    let config = PluginConfig::from_json(JSON, None).unwrap();
    assert_eq!(
        config_of(config),
        json!({
            "nodeDefaults": {
                "cpu": { "watermark": 0.7, "system": "500m" },
                "memory": { "watermark": 0.7, "system": "512Mi" },
                "computeUnit": { "vCPUs": "250m", "mem": 1 },
            },
            "nodeOverrides": [{
                "nodes": ["a"],
                "config": {
                    "cpu": { "watermark": 0.9, "system": "1" },
                    "memory": { "watermark": 0.9, "system": "2Gi" },
                    "computeUnit": { "vCPUs": 1, "mem": 4 },
                },
            }],
            "memBlockSize": "1Gi",
            "schedulerName": "autoscale-scheduler",
            "migrationDeletionRetrySeconds": 5,
            "doMigration": false,
            "k8sNodeGroupLabel": "eks.amazonaws.com/nodegroup",
            "dumpState": { "port": 10298, "timeoutSeconds": 5 },
        })
    );
    // The same keys where nothing is said.
    assert_eq!(
        config_of(PluginConfig::from_json("{}", None).unwrap()),
        json!({
            "nodeDefaults": {
                "cpu": { "watermark": 1.0, "system": "0" },
                "memory": { "watermark": 1.0, "system": "0" },
                "computeUnit": { "vCPUs": 1, "mem": 8 },
            },
            "nodeOverrides": [],
            "memBlockSize": "128Mi",
            "schedulerName": "",
            "migrationDeletionRetrySeconds": 0,
            "doMigration": false,
            "k8sNodeGroupLabel": "",
            "dumpState": null,
        })
    );
}

#[tokio::test]
async fn a_unit_is_shown_as_told_once_an_agent_has_spoken() {
    let plugin = plugin(PluginConfig::from_json(JSON, None).unwrap());
    let body = json!({
        "protoVersion": 3,
        "pod": { "namespace": "default", "name": "spoken" },
        "resources": { "vCPUs": "250m", "mem": 1 },
        "metrics": null,
    });
    let request = Request::post("/").body(Bytes::from(body.to_string())).unwrap();
    assert_eq!(Endpoint(plugin.clone()).respond(read(&request)).await.status(), 200);
    let state = dump(&plugin, false);
    let pods = state["state"]["nodes"][0]["value"]["pods"].as_array().unwrap();
    let units: Vec<(&Value, &Value)> = pods
        .iter()
        .map(|pod| (&pod["key"]["name"], &pod["value"]["mostRecentComputeUnit"]))
        .collect();
    let told = json!({ "vCPUs": "250m", "mem": 1 });
    assert_eq!(units, [(&json!("quiet"), &Value::Null), (&json!("spoken"), &told)]);
}

fn config_of(config: PluginConfig) -> Value {
    dump(&plugin(config), false)["state"]["config"].clone()
}

fn plugin(config: PluginConfig) -> Plugin {
    let lists = Lists::from_text(LISTS, config.slot).unwrap();
    Plugin::new(config, &lists, Clock::starting_at(Moment::from_millis(1)))
}
