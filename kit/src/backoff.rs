//! How long to wait before trying again: doubling, capped, jittered. A function of its
//! arguments, so that a test can check it and two processes with two seeds never march in step.

use std::time::Duration;

/// The first and the longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// However many failed.
    pub longest: Duration,
}

// === impl Backoff ===

impl Backoff {
    /// A quarter of a second, up to ten.
    pub const USUAL: Self =
        Self { first: Duration::from_millis(250), longest: Duration::from_secs(10) };

    /// The wait after this many failed attempts in a row: between three quarters of, and, the
    /// doubled figure. Attempt 0 does not wait.
    pub fn wait(self, attempt: u32, seed: u64) -> Duration {
        let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
        let whole = self.first.saturating_mul(1 << doublings.min(20)).min(self.longest);
        let quarter = whole / 4;
        let mut draw = fastrand::Rng::with_seed(seed ^ u64::from(attempt).rotate_left(32));
        whole - quarter + quarter.mul_f64(draw.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(attempt: u32, seed: u64) -> Duration {
        Backoff::USUAL.wait(attempt, seed)
    }

    #[test]
    fn waits_double_up_to_the_longest_and_never_leave_their_band() {
        assert_eq!(wait(0, 1), Duration::ZERO);
        for seed in 0..200 {
            for (attempt, most) in [(1, 250), (2, 500), (3, 1000), (7, 10_000), (u32::MAX, 10_000)]
            {
                let most = Duration::from_millis(most);
                let wait = wait(attempt, seed);
                assert!(wait <= most && wait >= most * 3 / 4, "{attempt}/{seed}: {wait:?}");
            }
        }
    }

    #[test]
    fn the_same_seed_waits_the_same_and_another_does_not() {
        assert_eq!(wait(5, 7), wait(5, 7));
        assert_ne!(wait(5, 7), wait(5, 8));
    }
}
