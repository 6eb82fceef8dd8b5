//! How long to leave a peer alone: a wait that grows with each failure in a row.
//!
//! The one place that computes a deadline after a failure. It is `failed_at + wait`, never "now minus
//! something", and is jittered from a seed, so that many VMs do not ask in step.

use std::time::Duration;
use windlass_protocol::Moment;

/// A failure that comes later than this after the one before begins a new row.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// A wait after a failure or a refusal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backoff {
    /// Failures since the last success, or the last long silence.
    failures: u32,
    failed_at: Option<Moment>,
    until: Option<Moment>,
    first: Duration,
    longest: Duration,
}

/// A deterministic source of spread: the same seed gives the same waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    state: u64,
}

// === impl Backoff ===

impl Backoff {
    /// The first wait, and the longest that doubling it leads to.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { failures: 0, failed_at: None, until: None, first, longest }
    }

    pub(crate) fn is_over(&self, now: Moment) -> bool {
        self.lasts(now).is_none()
    }

    /// When the wait ends, while it lasts.
    pub(crate) fn lasts(&self, now: Moment) -> Option<Moment> {
        self.until.filter(|until| now < *until)
    }

    /// When the wait ends or ended.
    pub(crate) const fn ends(&self) -> Option<Moment> {
        self.until
    }

    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn failed(&mut self, now: Moment, jitter: &mut Jitter) {
        let long = FORGOTTEN_AFTER.max(self.longest.saturating_mul(3));
        if self.failed_at.is_some_and(|at| now.since(at) > long) {
            self.failures = 0;
        }
        self.failed_at = Some(now);
        let wait = self.first.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now.after(jitter.around(wait)));
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::new(self.first, self.longest);
    }

    /// Ends the wait, and remembers the failures.
    pub(crate) fn lift(&mut self) {
        self.until = None;
    }
}

// === impl Jitter ===

impl Jitter {
    /// The source that follows from this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// `wait`, give or take a tenth.
    pub(crate) fn around(&mut self, wait: Duration) -> Duration {
        wait.mul_f64(0.9 + 0.2 * self.fraction())
    }

    /// Somewhere between nothing and `wait`.
    pub(crate) fn within(&mut self, wait: Duration) -> Duration {
        wait.mul_f64(self.fraction())
    }

    /// From 0 to 1; the generator is SplitMix64.
    fn fraction(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
        let fraction = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        fraction
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node's VMs have each a seed of their own.
    #[test]
    fn many_that_fail_at_once_do_not_go_on_in_step() {
        const MANY: u64 = 1_000;
        let start = Moment::from_millis(1_000);
        let mut counts = [0_u64; 50];
        for seed in 0..MANY {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
            let (mut jitter, mut at) = (Jitter::new(seed), start);
            loop {
                backoff.failed(at, &mut jitter);
                at = backoff.ends().unwrap();
                let millis = at.since(start).as_millis().saturating_sub(120_000);
                let Some(count) = counts.get_mut(usize::try_from(millis / 100).unwrap()) else {
                    break;
                };
                *count += u64::from(millis > 0);
            }
        }
        // On average there are 20 in a tenth of a second.
        assert!(counts.iter().all(|count| *count <= 50), "{counts:?}");
        assert!(counts.iter().sum::<u64>() >= MANY * 9 / 10, "{counts:?}");
    }

    #[test]
    fn waits_grow_to_a_limit_and_end_with_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(4));
        let mut jitter = Jitter::new(7);
        let start = Moment::from_millis(1_000);
        for most in [1_100, 2_200, 4_400, 4_400] {
            backoff.failed(start, &mut jitter);
            let wait = backoff.lasts(start).unwrap().since(start).as_millis();
            assert!((most * 9 / 11..=most).contains(&wait), "{wait} of {most}");
        }
        assert_eq!(backoff.failures(), 4);
        let much_later = start.after(Duration::from_secs(61));
        let mut later = backoff.clone();
        later.failed(much_later, &mut jitter);
        assert_eq!(later.failures(), 1);
        backoff.lift();
        assert!(backoff.is_over(start) && backoff.failures() == 4);
        backoff.succeeded();
        assert_eq!(backoff, Backoff::new(Duration::from_secs(1), Duration::from_secs(4)));
    }
}
