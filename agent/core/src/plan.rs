//! What to do now, and when to ask again.

use crate::event::Action;
use windlass_protocol::Moment;

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// At most one action per peer.
    pub actions: Vec<Action>,
    /// The first moment at which the plan may differ without anything happening.
    pub wake_at: Option<Moment>,
}

// === impl Plan ===

impl Plan {
    pub(crate) fn wake(&mut self, now: Moment, at: Moment) {
        if at > now {
            self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
        }
    }
}
