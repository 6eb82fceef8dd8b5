//! Events, and their form on the wire: the reference's JSON, field by field.

use crate::utc::Utc;
use crate::{Endpoint, Source};
use serde::{Deserialize, Serialize};
use windlass_protocol::{Moment, Sequence};

/// The origin of idempotency keys. The meter keeps it even if the node is renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The node.
    pub source: Source,
    /// The start of the meter: a new meter has other keys.
    pub since: Moment,
}

/// The metric of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// CPU seconds: vCPUs that the VM had, times the seconds for which it had them.
    Cpu,
    /// Seconds in which the VM was there.
    Active,
}

/// The receiver's names of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// [`Metric::Cpu`].
    pub cpu: String,
    /// [`Metric::Active`].
    pub active: String,
}

/// An amount of use. An event never changes, because its key stands for its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Its number; the next event has the next one.
    pub sequence: Sequence,
    /// The billed endpoint.
    pub endpoint: Endpoint,
    /// The metric.
    pub metric: Metric,
    /// The start; a fraction of a second may be older.
    pub start: Moment,
    /// The end.
    pub stop: Moment,
    /// Whole seconds, above zero.
    pub value: u64,
}

/// An event as the receiver reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wire<'a> {
    idempotency_key: String,
    metric: &'a str,
    r#type: &'static str,
    endpoint_id: &'a str,
    start_time: String,
    stop_time: String,
    value: u64,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usages<'a> {
    events: Vec<Wire<'a>>,
}

// === impl Event ===

impl Event {
    /// The idempotency key: always the same for this event, and different for every other event.
    ///
    /// Time first, so that keys sort; then who made it; then a number without gaps, so that the
    /// receiver can see whether one is missing.
    pub fn key(&self, origin: &Origin) -> String {
        let Origin { source, since } = origin;
        format!("{}-{source}-{:x}-{}", Utc(self.stop), since.millis(), self.sequence)
    }

    fn wire<'a>(&'a self, origin: &Origin, names: &'a Names) -> Wire<'a> {
        Wire {
            idempotency_key: self.key(origin),
            metric: match self.metric {
                Metric::Cpu => &names.cpu,
                Metric::Active => &names.active,
            },
            r#type: "incremental",
            endpoint_id: self.endpoint.as_str(),
            start_time: Utc(self.start).to_string(),
            stop_time: Utc(self.stop).to_string(),
            value: self.value,
        }
    }
}

// === impl Usages ===

impl<'a> Usages<'a> {
    /// These events.
    pub fn of(events: &'a [Event], origin: &Origin, names: &'a Names) -> Self {
        Self { events: events.iter().map(|event| event.wire(origin, names)).collect() }
    }
}
