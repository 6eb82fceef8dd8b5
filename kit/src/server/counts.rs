//! Counts of refusals of a server, by reason.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Refusals of one or several servers. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    refused: Family<Labels, Counter>,
}

/// Why a server refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many connections.
    Crowded,
    /// The request's head was too slow.
    HeadTime,
    /// The request's body was too large.
    BodySize,
    /// The request's body was too slow.
    BodyTime,
    /// The request's body was incomplete.
    BodyBroken,
    /// The router was too slow.
    AnswerTime,
    /// The router panicked.
    Panic,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// The spelling of a [`Refusal`], so there are only so many.
    reason: &'static str,
}

// === impl Counts ===

impl Counts {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_refusals",
            "Requests that a server refused by itself, by reason",
            self.refused.clone(),
        );
    }

    /// The number of refusals with this reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.refused.get_or_create(&Labels { reason: reason.as_str() }).get()
    }

    pub(super) fn refused(&self, reason: Refusal) {
        self.refused.get_or_create(&Labels { reason: reason.as_str() }).inc();
    }
}

// === impl Refusal ===

impl Refusal {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::HeadTime => "head-time",
            Self::BodySize => "body-size",
            Self::BodyTime => "body-time",
            Self::BodyBroken => "body-broken",
            Self::AnswerTime => "answer-time",
            Self::Panic => "panic",
        }
    }
}
