//! What the plugin exports: ours, and the reference's names where they mean the same.
//!
//! The figures of nodes are read from the books when they are scraped, so they are never old, and
//! those of a node that is not listed any more are gone. What is counted of all nodes is counted
//! beside them: a counter never falls.

use crate::directory::NodeEntry;
use crate::figures::{FIELDS, Figures};
use crate::plugin::Plugin;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use windlass_kit::server::Counts;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin::metrics::{NodeFigures, gauge, register_nodes};

/// What every plugin exports.
pub fn registry(counts: &Counts, watchdog: &Watchdog) -> Registry {
    let mut registry = Registry::default();
    counts.register(registry.sub_registry_with_prefix("windlass_plugin"));
    watchdog.register(&mut registry);
    registry
}

/// Adds what a plugin of lists exports.
pub fn register(plugin: &Plugin, registry: &mut Registry) {
    plugin.directory().requests.register(registry);
    let of = plugin.clone();
    register_nodes(registry, move || {
        let figures = |(name, entry): (&String, &NodeEntry)| {
            entry.books.with_books(|books| NodeFigures::of(Some(name.clone()), books))
        };
        of.directory().cluster.nodes().iter().map(figures).collect()
    });
    registry.register_collector(Box::new(Nodes(plugin.clone())));
}

/// The figures of all nodes under the reference's names.
#[derive(Debug)]
struct Nodes(Plugin);

// === impl Nodes ===

impl Collector for Nodes {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let directory = self.0.directory();
        let nodes = Figures::of_all(&directory);
        let help = "Problems of the lists that need a look; the log names them";
        let problems = "windlass_plugin_list_problems";
        let one = encoder.encode_descriptor(problems, help, None, MetricType::Gauge)?;
        ConstGauge::new(self.0.problems()).encode(one)?;
        for (name, help, of) in [
            (
                "autoscaling_plugin_node_cpu_resources_current",
                "Milli-CPUs of each node, by field",
                (|figures| figures.cpu) as fn(&Figures) -> _,
            ),
            (
                "autoscaling_plugin_node_mem_resources_current",
                "Bytes of memory of each node, by field",
                |figures| figures.mem,
            ),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (node, _, figures) in &nodes {
                for (field, value) in FIELDS.into_iter().zip(of(figures)) {
                    let labels = [("node", *node), ("node_group", ""), ("field", field)];
                    gauge(value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let unlisted = [("<none>", &directory.unlisted)];
        let all = nodes.iter().map(|(name, entry, _)| (*name, *entry)).chain(unlisted);
        requests(encoder, all, self.0.answers())
    }
}

/// Answers by status, node, and whether the request had metrics; and by status alone.
fn requests<'a>(
    mut encoder: DescriptorEncoder,
    entries: impl Iterator<Item = (&'a str, &'a NodeEntry)>,
    in_all: BTreeMap<u16, u64>,
) -> Result<(), fmt::Error> {
    let help = "Permit requests, by status, node and whether the VM's load went with them";
    let name = "autoscaling_plugin_resource_requests_results";
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (node, entry) in entries {
        for ((status, with_metrics), count) in entry.answers() {
            let code = status.to_string();
            let has_metrics = if with_metrics { "true" } else { "false" };
            let labels = [("code", code.as_str()), ("node", node), ("has_metrics", has_metrics)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    let (name, help) = ("autoscaling_plugin_resource_requests", "Permit requests, by status");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (status, count) in in_all {
        let code = status.to_string();
        ConstCounter::new(count).encode(family.encode_family(&[("code", code.as_str())])?)?;
    }
    Ok(())
}
