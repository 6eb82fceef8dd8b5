//! Notices that the process did not run for a while: it, or its machine, was stopped.
//!
//! Requests that came meanwhile wait in their connections, older ones beside newer ones, and are read in any order.
//! Their agents have given up on all of them. So what is read right after a stop is refused in passing, and books never
//! take an old figure for a new one.

use crate::clock::Clock;
use crate::watchdog::Pulse;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use windlass_protocol::Moment;
use windlass_protocol::timing::LONGEST_ACT;

/// Between two looks at the clock.
const LOOKS: Duration = Duration::from_millis(250);

/// After a stop, what waited is read within this time.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// Said in place of an answer.
pub const WORDS: &str = "the process did not run a moment ago, and the request may have waited";

/// Nobody looks at the clock.
const UNWATCHED: u64 = u64::MAX;

/// Whether the process was stopped a moment ago. Clones share it.
#[derive(Clone, Debug)]
pub struct Stops {
    clock: Clock,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The last look at the clock.
    looked: AtomicU64,
    /// What is read before this moment may have waited.
    until: AtomicU64,
}

// === impl Stops ===

impl Stops {
    /// By this clock. Until [`Stops::run`] begins, nothing is taken for a stop.
    pub fn new(clock: Clock) -> Self {
        let inner = Inner { looked: AtomicU64::new(UNWATCHED), until: AtomicU64::new(0) };
        Self { clock, inner: Arc::new(inner) }
    }

    /// Whether a request that is read now may have waited for longer than an agent does.
    pub fn is_just_over(&self) -> bool {
        let now = self.clock.now();
        self.since_look(now) > LONGEST_ACT
            || now.millis() < self.inner.until.load(Ordering::Acquire)
    }

    /// Looks at the clock until told to stop.
    ///
    /// # Errors
    /// None.
    pub async fn run(self, pulse: Pulse, stop: CancellationToken) -> Result<(), Infallible> {
        self.look();
        while pulse.rest("the next look at the clock", LOOKS, &stop).await {
            self.look();
        }
        Ok(())
    }

    fn look(&self) {
        let now = self.clock.now();
        let stopped = self.since_look(now);
        if stopped > LONGEST_ACT {
            let seconds = stopped.as_secs();
            warn!(seconds, "the process did not run: requests that came meanwhile are passed over");
            self.inner.until.store(now.after(READ_WITHIN).millis(), Ordering::Release);
        }
        self.inner.looked.store(now.millis(), Ordering::Release);
    }

    fn since_look(&self, now: Moment) -> Duration {
        match self.inner.looked.load(Ordering::Acquire) {
            UNWATCHED => Duration::ZERO,
            looked => now.since(Moment::from_millis(looked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_read_right_after_a_stop_may_have_waited() {
        let stops = Stops::new(Clock::starting_at(Moment::from_millis(1_000)));
        let later = async |time| tokio::time::advance(time).await;
        later(Duration::from_secs(60)).await;
        assert!(!stops.is_just_over(), "nobody looks yet");
        stops.look();
        later(LONGEST_ACT).await;
        assert!(!stops.is_just_over(), "an agent waits for so long");
        later(Duration::from_millis(1)).await;
        assert!(stops.is_just_over());
        stops.look();
        assert!(stops.is_just_over(), "other requests wait still");
        later(READ_WITHIN).await;
        assert!(!stops.is_just_over());
    }
}
