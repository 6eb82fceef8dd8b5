//! What is counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Failures of watches, by what is watched. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Watches(Family<Of, Counter>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    of: &'static str,
}

// === impl Watches ===

impl Watches {
    /// Adds them to what a part of a process exports.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "watch_failures",
            "Failures of watches of the API server",
            self.0.clone(),
        );
    }

    /// A watch of this failed.
    pub fn failed(&self, of: &'static str) {
        self.0.get_or_create_owned(&Of { of }).inc();
    }
}
