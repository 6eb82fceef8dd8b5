//! When a peer may be spoken to: one request at a time, and a growing rest after a failure.
//!
//! The one place that computes a deadline after a failure. Rests are `failed_at + rest`, never
//! "now minus something", and are jittered from a seed, so that many VMs do not ask in step.

use crate::event::Action;
use std::time::Duration;
use windlass_protocol::Moment;

/// The line to one peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    state: State,
    /// Failures since the last success.
    failures: u32,
    first_rest: Duration,
    longest_rest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Idle,
    /// `heard` is false once the answer no longer means anything.
    Busy {
        action: Action,
        heard: bool,
    },
    Resting {
        until: Moment,
    },
}

/// A deterministic source of spread: the same seed gives the same waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jitter {
    state: u64,
}

// === impl Line ===

impl Line {
    pub(crate) const fn new(first_rest: Duration, longest_rest: Duration) -> Self {
        Self { state: State::Idle, failures: 0, first_rest, longest_rest }
    }

    /// Whether a request may be sent now.
    pub(crate) fn is_free(&self, now: Moment) -> bool {
        match self.state {
            State::Idle => true,
            State::Busy { .. } => false,
            State::Resting { until } => now >= until,
        }
    }

    /// When it is free again, if that is only a matter of time.
    pub(crate) fn free_at(&self) -> Option<Moment> {
        match self.state {
            State::Resting { until } => Some(until),
            State::Idle | State::Busy { .. } => None,
        }
    }

    /// The request under way.
    pub(crate) fn busy(&self) -> Option<Action> {
        match self.state {
            State::Busy { action, .. } => Some(action),
            State::Idle | State::Resting { .. } => None,
        }
    }

    /// Whether the last request failed.
    pub(crate) const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Failures in a row.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn sent(&mut self, action: Action) {
        self.state = State::Busy { action, heard: true };
    }

    /// The answer to the request under way will mean nothing: its session is over.
    pub(crate) fn disregard(&mut self) {
        if let State::Busy { heard, .. } = &mut self.state {
            *heard = false;
        }
    }

    /// An answer came: the action that it answers, unless it means nothing any more.
    pub(crate) fn answered(&mut self) -> Option<Action> {
        self.failures = 0;
        self.hang_up()
    }

    /// It was hung up: the action that got no answer, unless that means nothing any more.
    pub(crate) fn failed(&mut self, now: Moment, jitter: &mut Jitter) -> Option<Action> {
        let action = self.hang_up();
        self.failures = self.failures.saturating_add(1);
        let doublings = (self.failures - 1).min(16);
        let rest = self.first_rest.saturating_mul(1 << doublings).min(self.longest_rest);
        self.state = State::Resting { until: now.after(jitter.around(rest)) };
        action
    }

    fn hang_up(&mut self) -> Option<Action> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Busy { action, heard } => heard.then_some(action),
            State::Idle | State::Resting { .. } => None,
        }
    }
}

// === impl Jitter ===

impl Jitter {
    pub(crate) const fn new(seed: u64) -> Self {
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
    pub(crate) fn next(&mut self) -> u64 {
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

    #[test]
    fn rests_grow_to_a_limit_and_end_with_a_success() {
        let mut line = Line::new(Duration::from_secs(1), Duration::from_secs(4));
        let mut jitter = Jitter::new(7);
        let start = Moment::from_millis(1_000);
        for most in [1_100, 2_200, 4_400, 4_400] {
            line.sent(Action::Look);
            assert!(!line.is_free(start));
            assert_eq!(line.failed(start, &mut jitter), Some(Action::Look));
            assert!(!line.is_free(start));
            let wait = line.free_at().unwrap().since(start).as_millis();
            assert!((most * 9 / 11..=most).contains(&wait), "{wait} of {most}");
        }
        line.sent(Action::Look);
        assert_eq!(line.answered(), Some(Action::Look));
        assert!(line.is_free(start) && !line.is_failing());
    }

    #[test]
    fn an_answer_to_a_session_that_is_over_means_nothing() {
        let mut line = Line::new(Duration::from_secs(1), Duration::from_secs(4));
        line.sent(Action::Measure);
        line.disregard();
        assert_eq!(line.answered(), None);
        assert!(line.is_free(Moment::default()));
    }
}
