//! The operator's page says what the code does.

use axum::body::Body;
use axum::http::Request;
use clap::CommandFactory;
use prometheus_client::encoding::text::encode;
use std::collections::BTreeSet;
use tower::ServiceExt;
use windlass_kit::clock::Clock;
use windlass_kit::server::{Counts, Refusal};
use windlass_plugin_program::Plugin;
use windlass_plugin_program::args::Args;
use windlass_plugin_program::config::PluginConfig;
use windlass_plugin_program::http::router;
use windlass_plugin_program::keys::{
    JSON_KEYS, LISTED_KEYS, NODE_KEYS, OVERRIDE_KEYS, PLUGIN_KEYS,
};
use windlass_plugin_program::metrics::registry;
use windlass_protocol::Moment;
use windlass_protocol::vm_file::Key;

const PAGE: &str = include_str!("../../../docs/plugin.md");
const METRICS: &str = include_str!("../../../docs/metrics.md");

const EXAMPLE: &str = "[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"4GiB\"\n";

#[test]
fn the_tables_of_keys_are_those_of_the_code() {
    for (heading, keys) in [
        ("## plugin.toml", PLUGIN_KEYS),
        ("### A node", NODE_KEYS),
        ("### A VM", LISTED_KEYS),
        ("## The reference's JSON", JSON_KEYS),
        ("### An override", OVERRIDE_KEYS),
    ] {
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
        PluginConfig::from_toml(example).unwrap();
    }
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_metric_is_there() {
    let (config, lists) = PluginConfig::from_toml(EXAMPLE).unwrap();
    let plugin = Plugin::new(config, &lists, Clock::starting_at(Moment::from_millis(1)));
    let counts = Counts::default();
    // A family without a member has no line.
    assert_eq!(counts.of(Refusal::Crowded), 0);
    let request = Request::post("/").body(Body::from("{}")).unwrap();
    assert_eq!(router(plugin.clone()).oneshot(request).await.unwrap().status(), 400);
    let mut text = String::new();
    encode(&mut text, &registry(&plugin, &counts)).unwrap();
    let measured: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        })
        .collect();
    let documented: BTreeSet<String> = rows(METRICS, "## windlass-plugin")
        .iter()
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(documented, measured);
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
