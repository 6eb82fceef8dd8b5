//! What metrics are made of: labels, and what counts for as long as something is kept.

use prometheus_client::metrics::gauge::Gauge;

/// Labels with their words. Those are constants, numbers of statuses or the spellings of enums, so
/// there are only so many.
pub(super) type Labels<const N: usize> = [(&'static str, String); N];

/// One more in a gauge, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Presence(Gauge);

// === impl Presence ===

impl Presence {
    pub(super) fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.dec();
    }
}
