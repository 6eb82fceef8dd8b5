//! The operator's page says what the code does.

use clap::CommandFactory;
use prometheus_client::encoding::text::encode;
use std::collections::BTreeSet;
use windlass_agent::Metrics;
use windlass_agent_program::args::Args;
use windlass_agent_program::config::{AgentConfig, Given};
use windlass_agent_program::keys::{AGENT_KEYS, JSON_KEYS};
use windlass_agent_program::metrics::{Files, registry};
use windlass_protocol::vm_file::Key;

const PAGE: &str = include_str!("../../../docs/agent.md");
const METRICS: &str = include_str!("../../../docs/metrics.md");

#[test]
fn the_tables_of_keys_are_those_of_the_code() {
    for (heading, keys) in [("## agent.toml", AGENT_KEYS), ("## The reference's JSON", JSON_KEYS)] {
        let coded: Vec<String> = keys.iter().map(row).collect();
        assert_eq!(rows(PAGE, heading), coded, "{heading}");
    }
}

#[test]
fn the_table_of_options_is_that_of_the_command_line() {
    let command = Args::command();
    let coded: Vec<String> = command
        .get_arguments()
        .filter_map(|argument| Some((argument.get_env()?, argument.get_long()?)))
        .map(|(variable, long)| format!("| `--{long}` | `{}` |", variable.to_string_lossy()))
        .collect();
    let written = rows(PAGE, "## Command line");
    assert_eq!(written.len(), coded.len());
    for (row, start) in written.iter().zip(coded) {
        assert!(row.starts_with(&start), "{row} is not {start}");
    }
}

#[test]
fn every_example_is_valid() {
    let examples: Vec<&str> =
        PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        AgentConfig::from_toml(example, &Given::default()).unwrap();
    }
}

/// The library's own are in the table of the host, and are not repeated.
#[test]
fn every_metric_is_documented_and_every_documented_metric_is_there() {
    let mut text = String::new();
    encode(&mut text, &registry(&Metrics::default(), &Files::default())).unwrap();
    let plain = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    // A family without a member has no line; the library's tests make one of each.
    let measured: BTreeSet<String> = plain
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        })
        .collect();
    let documented: BTreeSet<String> = ["## windlass-agent", "## Host"]
        .iter()
        .flat_map(|heading| rows(METRICS, heading))
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect();
    let silent: Vec<_> = measured.difference(&documented).collect();
    assert!(silent.is_empty(), "docs/metrics.md is silent about {silent:?}");
    let source = include_str!("../../src/metrics/reference.rs").replace("{word}", "…");
    let known = |name: &str| {
        let bare = name.trim_start_matches("autoscaling_agent_").trim_end_matches("_total");
        let bare = bare.replace("_requested_", "_…_").replace("_accepted_", "_…_");
        measured.contains(name) || source.contains(&format!("\"{bare}\""))
    };
    let stale: Vec<String> = rows(METRICS, "## windlass-agent")
        .iter()
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .filter(|name| !known(name))
        .collect();
    assert!(stale.is_empty(), "nobody measures {stale:?}");
}

fn row(key: &Key) -> String {
    let Key { name, kind, default, range, meaning } = key;
    match *kind {
        "JSON" => format!("| `{name}` | {default} | {range} | {meaning} |"),
        _ => format!("| `{name}` | {kind} | {default} | {range} | {meaning} |"),
    }
}

/// The rows of the first table behind this heading, without its head.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let (_, rest) = page.split_once(&format!("{heading}\n")).expect(heading);
    rest.lines()
        .skip_while(|line| !line.starts_with('|'))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(str::to_owned)
        .collect()
}
