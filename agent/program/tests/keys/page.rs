//! The operator's page says what the code does.

use clap::{CommandFactory, Parser};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use windlass_agent::Metrics;
use windlass_agent_config::config::{AgentConfig, CommandLine};
use windlass_agent_config::keys::{AGENT, JSON};
use windlass_agent_host::figures::Figures;
use windlass_agent_program::args::Args;
use windlass_agent_program::metrics::register;
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::Watches;
use windlass_protocol::config::Row;
use windlass_repo::pages::{assert_options, examples, key_row, measured, rows, subjects};

const PAGE: &str = include_str!("../../../../docs/agent.md");
const SERVICE: &str = include_str!("../../../../deploy/systemd/windlass-agent.service");
const CLUSTER: &str = include_str!("../../../../deploy/kustomize/agent/agent.toml");
const METRICS: &str = include_str!("../../../../docs/metrics.md");

#[test]
fn the_tables_of_keys_are_those_of_the_code() {
    for (heading, keys) in [("## agent.toml", AGENT), ("## The reference's JSON", JSON)] {
        let coded: Vec<String> = keys.rows().iter().map(row).collect();
        assert_eq!(rows(PAGE, heading), coded, "{heading}");
    }
}

#[test]
fn the_table_of_options_is_that_of_the_command_line() {
    let command = Args::command();
    let with_variable = command.get_arguments().filter_map(|argument| {
        let variable = argument.get_env()?.to_string_lossy().into_owned();
        Some([argument.get_long()?.to_owned(), variable])
    });
    assert_options(PAGE, &with_variable.collect::<Vec<_>>());
}

#[test]
fn every_example_is_valid() {
    for example in examples(PAGE) {
        AgentConfig::from_toml(example, &CommandLine::default()).unwrap();
    }
}

/// The library's own are in the table of the host, and are not repeated.
#[test]
fn every_metric_is_documented_and_every_documented_metric_is_there() {
    let mut text = String::new();
    let (agent, mut registry) = (Metrics::default(), Registry::default());
    agent.register(&mut registry);
    Watchdog::default().register(&mut registry);
    register(&agent, &Figures::default(), &mut registry);
    let watches = Watches::default();
    watches.register(registry.sub_registry_with_prefix("windlass_agent"));
    watches.failed("pods");
    encode(&mut text, &registry).unwrap();
    // A family without a member has no line; the library's tests make one of each.
    let measured = measured(&text);
    let own = subjects(METRICS, "## windlass-agent");
    let documented = own.union(&subjects(METRICS, "## Host")).cloned().collect();
    let silent: Vec<_> = measured.difference(&documented).collect();
    assert!(silent.is_empty(), "docs/metrics.md is silent about {silent:?}");
    let source = include_str!("../../../src/metrics/reference.rs");
    let known = |name: &str| {
        let bare = name.trim_start_matches("autoscaling_agent_").trim_end_matches("_total");
        measured.contains(name) || source.contains(&format!("\"{bare}\""))
    };
    let stale: Vec<_> = own.iter().filter(|name| !known(name)).collect();
    assert!(stale.is_empty(), "nobody measures {stale:?}");
}

/// What the configuration may make needful is on its command line.
#[test]
fn the_shipped_service_can_start_with_billing() {
    let line = SERVICE.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let args = Args::try_parse_from(line.replace("%H", "host-1").split(' ')).unwrap();
    assert_eq!(args.command_line.node_name.as_deref(), Some("host-1"));
}

/// The DaemonSet says which node that is.
#[test]
fn the_shipped_file_for_a_cluster_is_valid() {
    let node_name = Some("worker-1".to_owned());
    let command_line = CommandLine { node_name, ..CommandLine::default() };
    let config = AgentConfig::from_toml(CLUSTER, &command_line).unwrap();
    assert_eq!(config.kubernetes.unwrap().node, "worker-1");
    assert!(config.plugin.has_tls() && config.trust.token.is_some());
}

fn row(Row { name, kind, default, range, meaning }: &Row) -> String {
    key_row([name, kind, default, range, meaning])
}
