//! What to do now, and when to ask again.

use crate::event::Action;
use crate::in_flight::InFlight;
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
    /// Adds an action, if it is due and its peer may be asked now; or the moment at which it will be.
    pub(crate) fn offer(
        &mut self,
        now: Moment,
        in_flight: &InFlight,
        due: Option<(Moment, Action)>,
    ) {
        let Some((at, action)) = due else { return };
        if in_flight.is_free(now) && at <= now {
            self.actions.push(action);
        } else if in_flight.busy().is_none() {
            self.wake(now, at.max(in_flight.free_at().unwrap_or(at)));
        }
    }

    /// Something ends by itself then.
    pub(crate) fn wake(&mut self, now: Moment, at: Moment) {
        if at > now {
            self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
        }
    }
}
