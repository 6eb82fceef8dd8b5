//! Since when the guest's time goes on.

use std::time::Duration;
use windlass_protocol::Moment;
use windlass_scaling::Loads;

/// Since when the guest's time goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Runs {
    /// It was never seen to stand still.
    #[default]
    Always,
    /// It was seen to stand still, and to run from then on.
    Since(Moment),
    /// It stands still; whether this agent acted when that was seen.
    Not {
        /// Whether it did.
        acted: bool,
    },
}

// === impl Runs ===

impl Runs {
    /// When it was seen to run again, if it ever stood still.
    pub(super) fn since(self) -> Option<Moment> {
        match self {
            Self::Since(since) => Some(since),
            Self::Always | Self::Not { .. } => None,
        }
    }

    /// The figures that the guest has run for long enough to have, at this moment.
    pub(super) fn counts(self, at: Moment, loads: Loads) -> Loads {
        match self {
            Self::Always => loads,
            Self::Since(since) => loads.within(at.since(since)),
            Self::Not { .. } => loads.within(Duration::ZERO),
        }
    }
}
