//! The operator's page says what the code does.

use axum::body::Bytes;
use axum::http::Request;
use clap::CommandFactory;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::time::Duration;
use windlass_kit::clock::Clock;
use windlass_kit::server::{Counts, Refusal};
use windlass_kit::watchdog::Watchdog;
use windlass_plugin::Endpoint;
use windlass_plugin::http::read;
use windlass_plugin_cluster::books::Terms;
use windlass_plugin_cluster::metrics::Counts as OfCluster;
use windlass_plugin_cluster::{ClusterBooks, Epoch, Leadership};
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::keys::{JSON, LISTED, NODE, OVERRIDE, PLUGIN, POOL};
use windlass_plugin_core::pods::Pools;
use windlass_plugin_core::trust::Denied;
use windlass_plugin_program::Plugin;
use windlass_plugin_program::args::Args;
use windlass_plugin_program::metrics::{register, registry};
use windlass_protocol::config::Row;
use windlass_protocol::vm_view::Scaling;
use windlass_protocol::{Moment, Resources, UnitChoice};
use windlass_repo::pages::{assert_options, examples, key_row, measured, rows, subjects};

const PAGE: &str = include_str!("../../../../docs/plugin.md");
const METRICS: &str = include_str!("../../../../docs/metrics.md");

const EXAMPLE: &str = "[[node]]\nname = \"n\"\ncpu = 4\nmemory = \"4GiB\"\n";

#[test]
fn the_tables_of_keys_are_those_of_the_code() {
    for (heading, keys) in [
        ("## plugin.toml", PLUGIN),
        ("### A pool of nodes", POOL),
        ("### A node", NODE),
        ("### A VM", LISTED),
        ("## The reference's JSON", JSON),
        ("### An override", OVERRIDE),
    ] {
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
        PluginConfig::from_toml(example, None).unwrap();
    }
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_metric_is_there() {
    let (config, lists) = PluginConfig::from_toml(EXAMPLE, None).unwrap();
    let plugin = Plugin::new(config, &lists, Clock::starting_at(Moment::from_millis(1)));
    let counts = Counts::default();
    // A family without a member has no line.
    assert_eq!(counts.of(Refusal::Crowded), 0);
    let request = Request::post("/").body(Bytes::from("{}")).unwrap();
    assert_eq!(Endpoint(plugin.clone()).respond(read(&request)).await.status(), 400);
    let mut text = String::new();
    let mut whole = registry(&counts, &Watchdog::default());
    register(&plugin, &mut whole);
    let (cluster, mut of_cluster) = (OfCluster::default(), Registry::default());
    let terms = Terms {
        unit: UnitChoice::default().usual(),
        reserve: Resources::ZERO,
        pools: Pools::default(),
    };
    cluster.register(
        &ClusterBooks::new(terms, Clock::system(), Leadership::sole(Epoch(1))),
        &mut of_cluster,
    );
    cluster.watches.failed("pods");
    cluster.bindings.count("bound");
    cluster.calls.count("filter", "some");
    cluster.denials.count("permits", &Denied::NoToken);
    cluster.reloads.count("done");
    cluster.headroom.count("create", "done");
    cluster.migrations.count("create", "done");
    cluster.conditions.count("condition", "done");
    cluster.certificates.write("windlass-plugin-tls", "done");
    cluster.certificates.problem("windlass-plugin-tls");
    cluster.resizes.count("grow", "done", None);
    cluster.resizes.count("give-up", "done", Some("deferred"));
    cluster.ceilings.count("written", Duration::from_millis(5));
    encode(&mut text, &of_cluster).unwrap();
    encode(&mut text, &whole).unwrap();
    assert_eq!(subjects(METRICS, "## windlass-plugin"), measured(&text));
}

#[test]
fn every_reason_of_a_condition_is_documented_with_its_status() {
    let coded = Scaling::ALL.map(|reason| format!("| `{reason}` | {} |", reason.status()));
    let documented = rows(PAGE, "### Looking at a cluster");
    assert_eq!(documented.len(), coded.len());
    for (documented, coded) in documented.iter().zip(coded) {
        assert!(documented.starts_with(&coded), "{documented}: {coded}");
    }
}

fn row(Row { name, kind, default, range, meaning }: &Row) -> String {
    key_row([name, kind, default, range, meaning])
}
