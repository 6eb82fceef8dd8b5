//! How many writes of one kind may be under way: a few, and one at a time while the API server does not answer, to find
//! out whether it does again.

use std::time::Duration;
use tokio::time::Instant;
use windlass_kit::backoff::Backoff;

/// Writes that are under way at a time.
const AT_ONCE: usize = 32;

/// Between writes while the API server does not answer.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(2) };

/// The pace of writes.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    failures: u32,
    rests_until: Option<Instant>,
}

// === impl Pace ===

impl Pace {
    /// How many writes may be under way.
    pub(crate) fn at_once(&self, now: Instant) -> usize {
        match self.rests_until {
            None => AT_ONCE,
            Some(until) if now < until => 0,
            Some(_) => 1,
        }
    }

    /// Until when no write may be sent; `None`: one may be sent now.
    pub(crate) fn rests_until(&self, now: Instant) -> Option<Instant> {
        self.rests_until.filter(|until| now < *until)
    }

    /// How many writes in a row had no answer.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    /// A write had no answer. Whether it is the first in a row.
    pub(crate) fn fail(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        let wait = BACKOFF.wait(self.failures, u64::from(std::process::id()));
        self.rests_until = Some(Instant::now() + wait);
        self.failures == 1
    }

    /// A write was answered. How many had no answer before it.
    pub(crate) fn answered(&mut self) -> u32 {
        self.rests_until = None;
        std::mem::take(&mut self.failures)
    }
}
