//! What the plugin exports. Labels are enums and names of nodes: a series per VM would grow
//! without bound.
//!
//! Requests are counted as they are answered. The gauges of nodes are read from the books when
//! they are scraped: a permit pays nothing for them, and a node that is gone has none.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windlass_plugin_core::wire::Refusal;
use windlass_plugin_core::{Books, Granted};

/// Permit requests by what came of them, and how long they took. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    by_answer: Family<Labels, Counter>,
    seconds: Counter<f64, AtomicU64>,
    /// Found once: most answers are one of these.
    granted: Arc<OnceLock<Counter>>,
    short: Arc<OnceLock<Counter>>,
}

/// The words are the spellings of an enum, so there are only so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    answer: &'static str,
}

/// What the gauges say of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFigures {
    /// The node's name; `None` where there is only one, which needs none.
    pub node: Option<String>,
    /// One for each of [`FIGURES`].
    values: [u64; 5],
}

struct NodeGauges<F>(F);

/// The gauges of a node: what each is called, and what it is.
const FIGURES: [(&str, &str); 5] = [
    ("windlass_plugin_room_milli_cpu", "Thousandths of a vCPU that may be reserved for VMs"),
    ("windlass_plugin_room_bytes", "Bytes of memory that may be reserved for VMs"),
    ("windlass_plugin_reserved_milli_cpu", "Thousandths of a vCPU that are reserved for VMs"),
    ("windlass_plugin_reserved_bytes", "Bytes of memory that are reserved for VMs"),
    (
        "windlass_plugin_over",
        "1 while more CPU or memory is reserved than there is, and no VM gets more of it than it has reserved",
    ),
];

/// Adds the gauges of nodes to what a process exports: of those that `nodes` gives when they
/// are scraped.
pub fn register_nodes(
    registry: &mut Registry,
    nodes: impl Fn() -> Vec<NodeFigures> + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(NodeGauges(nodes)));
}

/// A gauge as it is written.
pub fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

// === impl Requests ===

impl Requests {
    /// Adds them to what a process exports.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("windlass_plugin");
        let requests = "Permit requests by what came of them";
        registry.register("permit_requests", requests, self.by_answer.clone());
        let took =
            "How long permit requests took together, from the request that was read to its answer";
        registry.register("permit_seconds", took, self.seconds.clone());
    }

    /// A request was answered, or refused, after this time.
    pub fn took(&self, time: Duration) {
        self.seconds.inc_by(time.as_secs_f64());
    }

    /// Counts a request: whether it got less than it asked for, or why it was refused.
    pub(crate) fn count(&self, came: Result<&Granted, &Refusal>) {
        let counter = |answer| self.by_answer.get_or_create_owned(&Labels { answer });
        match came {
            Ok(granted) if granted.is_unrecorded => counter("unrecorded").inc(),
            Ok(granted) if granted.short.is_empty() => {
                self.granted.get_or_init(|| counter("granted")).inc()
            }
            Ok(_) => self.short.get_or_init(|| counter("short")).inc(),
            Err(refusal) => counter(word(refusal)).inc(),
        };
    }
}

fn word(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Method | Refusal::Body(_) | Refusal::TooLong(_) | Refusal::Unfit(_) => {
            "bad-request"
        }
        Refusal::NoVersion(_) | Refusal::Version { .. } => "version",
        Refusal::UnknownVm(_) => "unknown-vm",
        Refusal::Moving(_) => "moving",
        Refusal::OverRange(_) => "unsayable",
        Refusal::Passing(_) => "passing",
    }
}

// === impl NodeFigures ===

impl NodeFigures {
    /// Of these books, which are those of `node`.
    pub fn of(node: Option<String>, books: &Books) -> Self {
        let (room, reserved) = (books.room(), books.reserved());
        let (cpu, mem) = (room.cpu.milli(), room.mem.bytes());
        let values = [cpu, mem, reserved.cpu.milli(), reserved.mem.bytes(), books.is_over().into()];
        Self { node, values }
    }
}

// === impl NodeGauges ===

impl<F> fmt::Debug for NodeGauges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeGauges")
    }
}

impl<F: Fn() -> Vec<NodeFigures> + Send + Sync + 'static> Collector for NodeGauges<F> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let nodes = self.0();
        for (nth, (name, help)) in FIGURES.into_iter().enumerate() {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            if let [NodeFigures { node: None, values }] = nodes.as_slice() {
                gauge(values[nth]).encode(family)?;
                continue;
            }
            for NodeFigures { node, values } in &nodes {
                let labels = [("node", node.as_deref().unwrap_or_default())];
                gauge(values[nth]).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
