//! The table `[kubernetes]` of agent.toml: what is said of one that is wrong, and of keys that have no effect beside it.

use crate::files::{PLUGIN, judged};
use windlass_agent_config::config::{AgentConfig, CommandLine};

/// What stands behind [`PLUGIN`], and what must be said about it.
const CLUSTER: &[(&str, &[&str])] = &[
    ("kubernetes = 1", &["kubernetes = 1: must be a table, as [kubernetes]"]),
    ("[kubernetes]", &["kubernetes.node: is needed, or --node-name"]),
    ("kubernetes.node = \"\"", &["kubernetes.node = \"\": must be a text that is not empty"]),
    (
        "kubernetes = { node = \"n\", kubeconfig = \"x\" }",
        &["kubernetes.kubeconfig = \"x\": must be"],
    ),
    (
        "state_dir = \"/s\"\nvms_dir = \"/v\"\nsocket = \"/run/s\"\ncpu_limit = \"none\"\nkubernetes.node = \"n\"",
        &[
            "state_dir = \"/s\": must not be there with [kubernetes]: the agent of a node keeps",
            "vms_dir = \"/v\": must not be there with [kubernetes]: the agent of a node reads no",
            "socket = \"/run/s\": must not be there with [kubernetes]: the agent of a node serves",
            "cpu_limit = \"none\": must not be there with [kubernetes]: the spec of a VM",
        ],
    ),
];

#[test]
fn a_broken_table_of_a_cluster_is_refused_by_field_value_and_limit() {
    for (text, expected) in CLUSTER {
        let text = format!("{PLUGIN}{text}\n");
        judged(&text, AgentConfig::from_toml(&text, &CommandLine::default()), expected);
    }
}
