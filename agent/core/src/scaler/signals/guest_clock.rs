//! Since when the guest's time goes on.
//!
//! A guest that its hypervisor does not run does not notice that: its clock stands still with it.

use std::time::Duration;
use windlass_protocol::Moment;
use windlass_scaling::Loads;

/// Since when the guest's time goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GuestClock {
    /// It was never seen to stand still.
    #[default]
    Always,
    /// It was seen to stand still, and to run from then on.
    Since(Moment),
    /// It stands still; whether this agent acted when that was seen.
    Stopped { acted: bool },
}

// === impl GuestClock ===

impl GuestClock {
    /// When it was seen to run again, if it ever stood still.
    pub(super) fn since(self) -> Option<Moment> {
        match self {
            Self::Since(since) => Some(since),
            Self::Always | Self::Stopped { .. } => None,
        }
    }

    /// The figures that the guest has run for long enough to have, at this moment.
    pub(super) fn counts(self, at: Moment, loads: Loads) -> Loads {
        match self {
            Self::Always => loads,
            Self::Since(since) => loads.within(at.since(since)),
            Self::Stopped { .. } => loads.within(Duration::ZERO),
        }
    }
}
