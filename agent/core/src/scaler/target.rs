//! What the VM should have, computed once per change.
//!
//! A target is computed when something happened, and holds until time alone may change it. Plan,
//! status and journal read the same one.

use windlass_protocol::{Clip, Moment};
use windlass_scaling::{Goal, StabilizedGoal};

/// What the VM should have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    /// What the signals call for, after its rest.
    pub(super) stabilized: Option<StabilizedGoal>,
    /// What counts: the same, or what people ordered. `None` before the VM was seen.
    pub(super) goal: Option<Goal>,
    /// When this was computed.
    pub(super) from: Moment,
    /// The first moment at which it may be another by time alone.
    pub(super) until: Option<Moment>,
}

// === impl Target ===

impl Target {
    /// Whether it still holds, as long as nothing happened.
    pub(super) fn holds_at(&self, now: Moment) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }

    /// Whether load calls for more than the VM has, and no figure says yet whether that is the work
    /// of returning memory.
    pub(super) fn is_unclear(&self) -> bool {
        self.stabilized.is_some_and(|stabilized| stabilized.unclear)
    }

    /// Whether the maximum keeps the goal down, of vCPUs and of memory: what a person's lower maximum
    /// takes is no flapping.
    pub(super) fn is_bounded(&self) -> [bool; 2] {
        let reason = self.goal.map(|goal| goal.reason);
        let clips = reason.map_or([None; 2], |reason| [reason.cpu, reason.mem]);
        clips.map(|clip| clip == Some(Clip::Maximum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_holds_until_time_alone_may_change_it() {
        let at = Moment::from_millis;
        let target = Target { stabilized: None, goal: None, from: at(10), until: Some(at(20)) };
        assert_eq!([9, 10, 19, 20].map(|now| target.holds_at(at(now))), [false, true, true, false]);
    }
}
