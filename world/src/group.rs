//! The group of a hypervisor's process, whose CPU the host limits, and what its driver keeps of it.
//!
//! A limit that the driver has set is *ours*; what stands and is not ours is *found*. No limit in place of ours is a
//! reset: what was found stays. What was found outlives the agent.

use crate::guest::Guest;
use windlass_protocol::MilliCpu;

/// The step of a limit.
pub(crate) const STEP: MilliCpu = MilliCpu::from_milli(50);

/// Something that somebody does to such a group, or that goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Somebody sets this limit, or takes away whichever there is.
    Limit(Option<MilliCpu>),
    /// The hypervisor's process is moved to a new group, which has no limit; its driver finds it there.
    Moves,
    /// No limit can be set, or one can be again.
    Refuses(bool),
}

/// A group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// The limit in force.
    stands: Option<MilliCpu>,
    /// What somebody else has set.
    found: Option<MilliCpu>,
    /// The limit that is ours, if one is, in force or reset.
    ours: Option<MilliCpu>,
    /// What stood at the last look.
    looked: Option<MilliCpu>,
    pub(crate) refuses: bool,
}

// === impl Group ===

impl Group {
    pub(crate) const fn limit(&self) -> Option<MilliCpu> {
        self.stands
    }

    pub(crate) const fn found(&self) -> Option<MilliCpu> {
        self.found
    }

    /// Whether nothing of ours is in force: what was found is, or no limit at all.
    pub(crate) fn is_as_found(&self) -> bool {
        self.stands.is_none() || self.stands == self.found
    }

    /// Which limit is in force, in a word.
    pub(crate) fn state(&self) -> &'static str {
        match (self.stands, self.ours) {
            (None, None) => "no limit",
            (None, Some(_)) => "reset",
            (Some(stands), Some(ours)) if stands == ours => "ours",
            (Some(_), _) => "found",
        }
    }

    /// Somebody else sets a limit, or takes away whichever there is.
    pub(crate) fn set_by_somebody(&mut self, limit: Option<MilliCpu>) {
        self.stands = limit;
    }

    /// The process is in a new group, which has no limit.
    pub(crate) fn moves(&mut self) {
        *self = Self { refuses: self.refuses, ..Self::default() };
    }

    /// The driver looks: what stands and is not ours is found.
    pub(crate) fn look(&mut self) {
        let before = std::mem::replace(&mut self.looked, self.stands);
        if self.stands == before || self.stands.is_some() && self.stands == self.ours {
            return;
        }
        if self.stands.is_some() || self.ours.is_none() || self.ours != before {
            self.found = self.stands;
        }
    }

    /// The driver sets a limit, or puts back what was found. What somebody has set since the last look is
    /// not written over.
    pub(crate) fn set(&mut self, limit: Option<MilliCpu>) -> Result<(), &'static str> {
        let stands = self.stands;
        let known = stands.is_none() || stands == self.looked || stands == self.ours;
        self.look();
        if self.refuses {
            return Err("the group's limit cannot be written");
        }
        if !known {
            return Err("somebody else has set a limit");
        }
        let Some(limit) = limit else {
            (self.stands, self.looked, self.ours) = (self.found, self.found, None);
            return Ok(());
        };
        let in_steps = limit.round_down(STEP) == limit || Some(limit) == self.found;
        if limit.is_zero() || !in_steps {
            return Err("no such limit");
        }
        let limit = self.found.map_or(limit, |found| found.min(limit));
        if stands != Some(limit) {
            (self.stands, self.looked, self.ours) = (Some(limit), Some(limit), Some(limit));
        }
        Ok(())
    }
}

// === impl Guest ===

impl Guest {
    /// Whether the host leaves it CPU for each vCPU that is online, and, if it can limit it, no more.
    pub(crate) fn is_limited_as_it_uses(&self) -> bool {
        let Some(group) = &self.group else { return true };
        let online = self.online();
        group.limit().is_some_and(|limit| {
            limit <= online && online <= limit.round_up(MilliCpu::from_cores(1))
        })
    }

    /// Its driver looks at it.
    pub(crate) fn look(&mut self) {
        if let Some(group) = &mut self.group {
            group.look();
        }
    }

    /// As much of this CPU as the host leaves it.
    pub(crate) fn limited(&self, cpu: MilliCpu) -> MilliCpu {
        self.seen().limit.map_or(cpu, |limit| limit.min(cpu))
    }

    /// The CPU that it can use.
    pub(crate) fn usable(&self) -> MilliCpu {
        self.limited(self.online())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn milli(milli: u64) -> Option<MilliCpu> {
        Some(MilliCpu::from_milli(milli))
    }

    #[test]
    fn what_somebody_sets_is_a_ceiling_and_is_put_back() {
        let mut group = Group::default();
        assert_eq!(group.set(milli(750)), Ok(()));
        group.set_by_somebody(milli(620));
        assert!(group.set(milli(500)).is_err(), "it was not looked at since");
        assert_eq!((group.limit(), group.found()), (milli(620), milli(620)));
        assert_eq!(group.set(milli(1_000)), Ok(()));
        assert_eq!(group.limit(), milli(620), "it is never above what was found");
        assert_eq!(group.set(milli(500)), Ok(()));
        assert_eq!(group.set(None), Ok(()));
        assert_eq!((group.limit(), group.is_as_found()), (milli(620), true));
    }

    #[test]
    fn none_in_place_of_ours_is_a_reset_and_elsewhere_it_is_found() {
        let mut group = Group::default();
        group.set_by_somebody(milli(620));
        group.look();
        assert_eq!(group.set(milli(500)), Ok(()));
        group.set_by_somebody(None);
        group.look();
        assert_eq!((group.limit(), group.found(), group.state()), (None, milli(620), "reset"));
        assert_eq!(group.set(milli(500)), Ok(()));
        group.set_by_somebody(milli(700));
        group.look();
        group.set_by_somebody(None);
        group.look();
        assert_eq!((group.limit(), group.found()), (None, None));
    }
}
