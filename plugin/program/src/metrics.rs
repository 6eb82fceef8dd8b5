//! What the plugin exports: ours, and the reference's names where they mean the same.
//!
//! The figures of nodes are read from the books when somebody asks, so they are never old, and
//! those of a node that is not listed any more are gone. What is counted of all nodes is counted
//! beside them: a counter never falls.

use crate::directory::Place;
use crate::figures::Figures;
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

/// Everything that is exported.
pub fn registry(plugin: &Plugin, counts: &Counts, watchdog: &Watchdog) -> Registry {
    let mut registry = Registry::default();
    plugin.requests().register_requests(&mut registry);
    counts.register(registry.sub_registry_with_prefix("windlass_plugin"));
    watchdog.register(&mut registry);
    registry.register_collector(Box::new(Nodes(plugin.clone())));
    registry
}

/// The figures of all nodes.
struct Nodes(Plugin);

/// A figure of a node: its name, what it is, and how it is read.
type Figure = (&'static str, &'static str, fn(&Place, &Figures) -> u64);

const OURS: [Figure; 5] = [
    (
        "windlass_plugin_room_milli_cpu",
        "Thousandths of a vCPU that may be reserved for VMs",
        |place, _| place.room().cpu.milli(),
    ),
    ("windlass_plugin_room_bytes", "Bytes of memory that may be reserved for VMs", |place, _| {
        place.room().mem.bytes()
    }),
    (
        "windlass_plugin_reserved_milli_cpu",
        "Thousandths of a vCPU that are reserved for VMs",
        |_, figures| figures.cpu.reserved,
    ),
    (
        "windlass_plugin_reserved_bytes",
        "Bytes of memory that are reserved for VMs",
        |_, figures| figures.mem.reserved,
    ),
    (
        "windlass_plugin_over",
        "1 while more is reserved than there is, and no VM grows",
        |_, figures| u64::from(figures.over),
    ),
];

// === impl Nodes ===

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nodes")
    }
}

impl Collector for Nodes {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let directory = self.0.directory();
        let now = self.0.clock().now();
        let nodes: Vec<(&str, &Place, Figures)> = directory
            .nodes
            .iter()
            .map(|(name, place)| (name.as_str(), place, Figures::of(place, now)))
            .collect();
        for (name, help, read) in OURS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (node, place, figures) in &nodes {
                gauge(read(place, figures)).encode(family.encode_family(&[("node", *node)])?)?;
            }
        }
        let help = "Problems of the lists that need a look; the log names them";
        let problems = "windlass_plugin_list_problems";
        let one = encoder.encode_descriptor(problems, help, None, MetricType::Gauge)?;
        ConstGauge::new(self.0.problems()).encode(one)?;
        for (name, help, of) in [
            (
                "autoscaling_plugin_node_cpu_resources_current",
                "Milli-CPUs of each node, by field",
                Figures::cpu as fn(&Figures) -> _,
            ),
            (
                "autoscaling_plugin_node_mem_resources_current",
                "Bytes of memory of each node, by field",
                Figures::mem,
            ),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (node, _, figures) in &nodes {
                for (field, value) in of(figures) {
                    let labels = [("node", *node), ("node_group", ""), ("field", field)];
                    gauge(value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let nobody = [("<none>", &directory.nobody)];
        let all = nodes.iter().map(|(name, place, _)| (*name, *place)).chain(nobody);
        requests(encoder, all, self.0.answers())
    }
}

/// Answers by status, node, and whether the request had metrics; and by status alone.
fn requests<'a>(
    mut encoder: DescriptorEncoder,
    places: impl Iterator<Item = (&'a str, &'a Place)>,
    in_all: BTreeMap<u16, u64>,
) -> Result<(), fmt::Error> {
    let help = "Permit requests, by status, node and whether the VM's load went with them";
    let name = "autoscaling_plugin_resource_requests_results";
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (node, place) in places {
        for ((status, with_metrics), count) in place.answers() {
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

fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}
