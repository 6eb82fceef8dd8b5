//! What the plugin counts. Labels are enums: a series per VM would grow without bound.

use crate::refusal::Refusal;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use windlass_plugin_core::{Books, Granted, wire};
use windlass_protocol::Resources;

/// All of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: Family<Labels, Counter>,
    room_milli_cpu: Gauge,
    room_bytes: Gauge,
    reserved_milli_cpu: Gauge,
    reserved_bytes: Gauge,
    over: Gauge,
}

/// The words are the spellings of an enum, so there are only so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    answer: &'static str,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All that was asked for.
    Granted,
    /// Less than that.
    Short,
    /// Not a request.
    BadRequest,
    /// A version that is not spoken.
    Version,
    /// Of a VM that is not in the books.
    UnknownVm,
    /// Of a VM that keeps its size until it is moved.
    Moving,
    /// An answer that the wire cannot say.
    Unsayable,
}

// === impl Metrics ===

impl Metrics {
    /// Adds what is counted of requests to what a process exports, without the figures of a node.
    pub fn register_requests(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("windlass_plugin");
        let requests = "Permit requests by what came of them";
        registry.register("permit_requests", requests, self.requests.clone());
    }

    /// Adds all of them to what a process exports.
    pub fn register(&self, registry: &mut Registry) {
        self.register_requests(registry);
        let registry = registry.sub_registry_with_prefix("windlass_plugin");
        let room = "Thousandths of a vCPU that may be reserved for VMs";
        registry.register("room_milli_cpu", room, self.room_milli_cpu.clone());
        let room = "Bytes of memory that may be reserved for VMs";
        registry.register("room_bytes", room, self.room_bytes.clone());
        let reserved = "Thousandths of a vCPU that are reserved for VMs";
        registry.register("reserved_milli_cpu", reserved, self.reserved_milli_cpu.clone());
        let reserved = "Bytes of memory that are reserved for VMs";
        registry.register("reserved_bytes", reserved, self.reserved_bytes.clone());
        let over = "1 while more is reserved than there is, and no VM grows";
        registry.register("over", over, self.over.clone());
    }

    pub(crate) fn observe(&self, books: &Books) {
        let set = |cpu: &Gauge, mem: &Gauge, amount: Resources| {
            cpu.set(i64::try_from(amount.cpu.milli()).unwrap_or(i64::MAX));
            mem.set(i64::try_from(amount.mem.bytes()).unwrap_or(i64::MAX));
        };
        set(&self.room_milli_cpu, &self.room_bytes, books.room());
        set(&self.reserved_milli_cpu, &self.reserved_bytes, books.reserved());
        self.over.set(i64::from(books.is_over()));
    }

    pub(crate) fn granted(&self, granted: &Granted) {
        self.count(if granted.short.is_empty() { Outcome::Granted } else { Outcome::Short });
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.count(match refusal {
            Refusal::Method
            | Refusal::BrokeOff
            | Refusal::Wire(
                wire::Refusal::Body(_) | wire::Refusal::TooLong(_) | wire::Refusal::Unfit(_),
            ) => Outcome::BadRequest,
            Refusal::Wire(wire::Refusal::NoVersion(_) | wire::Refusal::Version { .. }) => {
                Outcome::Version
            }
            Refusal::Wire(wire::Refusal::UnknownVm(_)) => Outcome::UnknownVm,
            Refusal::Wire(wire::Refusal::Moving(_)) => Outcome::Moving,
            Refusal::Wire(wire::Refusal::OverRange(_)) => Outcome::Unsayable,
        });
    }

    fn count(&self, answer: Outcome) {
        self.requests.get_or_create(&Labels { answer: answer.as_str() }).inc();
    }
}

// === impl Outcome ===

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Short => "short",
            Self::BadRequest => "bad-request",
            Self::Version => "version",
            Self::UnknownVm => "unknown-vm",
            Self::Moving => "moving",
            Self::Unsayable => "unsayable",
        }
    }
}
