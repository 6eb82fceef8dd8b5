//! Chance and faults, from a seed.

use std::time::Duration;

/// A source of numbers: the same seed gives the same ones (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

/// How unkind the network is. Percentages are of messages, each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Requests that never arrive.
    pub lose_request: u64,
    /// Answers that never arrive: the request has taken effect.
    pub lose_answer: u64,
    /// Requests that arrive twice, the second time late.
    pub repeat: u64,
    /// Messages that take up to this long, in place of a few milliseconds.
    pub delay: Duration,
}

// === impl Chance ===

impl Chance {
    /// The source of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; zero where `limit` is zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw().checked_rem(limit).unwrap_or(0)
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// How long a message takes.
    pub(crate) fn delay(&mut self, faults: Faults) -> Duration {
        let most = u64::try_from(faults.delay.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(1 + self.below(5) + self.below(most.saturating_add(1)))
    }
}
