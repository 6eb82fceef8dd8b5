//! What covers what a VM is promised beyond its books: a ceiling that is recorded ahead, or what a kubelet has allocated.
//!
//! The *cap* is the largest size that its agent may be told at once. A permit above it is a *proposal*, which is reserved
//! and waits until the cap covers it.

use crate::allotment::{Allotment, Allotted};
use crate::ceilings::{Kept, Recorded};
use windlass_protocol::{Moment, Resources};

/// What covers the promises of one VM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cover {
    /// Nothing has to: what is reserved may be told.
    Nothing,
    /// A recorded ceiling.
    Ceiling(Box<Recorded>),
    /// What its kubelet has allocated to the VM's pod.
    Allocation(Box<Allotment>),
}

// === impl Cover ===

impl Cover {
    /// The pod says so of its ceiling; `None`: none is recorded for it.
    pub(crate) fn keep(&mut self, kept: Option<Kept>) {
        let told = self.told_early();
        match (&mut *self, kept) {
            (Self::Ceiling(recorded), Some(kept)) => recorded.shown(kept),
            (cover, None) => *cover = Self::Nothing,
            (cover, Some(kept)) => {
                let mut recorded = Recorded::new(kept);
                recorded.told_early = told;
                *cover = Self::Ceiling(Box::new(recorded));
            }
        }
    }

    /// The pod says so of what is allocated to it.
    pub(crate) fn allot(&mut self, allotted: Allotted) {
        let told = self.told_early();
        match self {
            Self::Allocation(allotment) => allotment.shown(allotted),
            Self::Nothing | Self::Ceiling(_) => {
                let number = self.recorded().map_or(0, Recorded::number);
                *self = Self::Allocation(Box::new(Allotment::new(allotted, told, number)));
            }
        }
    }

    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        match self {
            Self::Ceiling(recorded) => Some(recorded),
            Self::Nothing | Self::Allocation(_) => None,
        }
    }

    pub(crate) fn recorded_mut(&mut self) -> Option<&mut Recorded> {
        match self {
            Self::Ceiling(recorded) => Some(recorded),
            Self::Nothing | Self::Allocation(_) => None,
        }
    }

    pub(crate) fn allotment(&self) -> Option<&Allotment> {
        match self {
            Self::Allocation(allotment) => Some(allotment),
            Self::Nothing | Self::Ceiling(_) => None,
        }
    }

    pub(crate) fn allotment_mut(&mut self) -> Option<&mut Allotment> {
        match self {
            Self::Allocation(allotment) => Some(allotment),
            Self::Nothing | Self::Ceiling(_) => None,
        }
    }

    /// The cap; `None`: there is none.
    pub(crate) fn cap(&self) -> Option<Resources> {
        match self {
            Self::Nothing => None,
            Self::Ceiling(recorded) => Some(recorded.cap()),
            Self::Allocation(allotment) => Some(allotment.cap()),
        }
    }

    /// What an agent was told before any word of it counts: the VM may have it.
    pub(crate) fn told_early(&self) -> Resources {
        match self {
            Self::Nothing => Resources::ZERO,
            Self::Ceiling(recorded) => recorded.told_early,
            Self::Allocation(allotment) => allotment.told_early,
        }
    }

    /// What the VM has by its object, if that is another than its pod.
    pub(crate) fn has(&self) -> Resources {
        match self {
            Self::Nothing => Resources::ZERO,
            Self::Ceiling(recorded) => recorded.has,
            Self::Allocation(allotment) => allotment.has,
        }
    }

    /// An agent is told this while no word of it counts. Whether that is remembered.
    pub(crate) fn tell_early(&mut self, permit: Resources) -> bool {
        let told = match self {
            Self::Nothing => return false,
            Self::Ceiling(recorded) => &mut recorded.told_early,
            Self::Allocation(allotment) => &mut allotment.told_early,
        };
        *told = told.max(permit);
        true
    }

    /// A word of the agent counts: what it was told before is part of that.
    pub(crate) fn take_told_early(&mut self) -> Resources {
        match self {
            Self::Nothing => Resources::ZERO,
            Self::Ceiling(recorded) => std::mem::take(&mut recorded.told_early),
            Self::Allocation(allotment) => std::mem::take(&mut allotment.told_early),
        }
    }

    /// What is granted above the cap, and reserved until the cap covers it.
    pub(crate) fn proposal(&self) -> Resources {
        match self {
            Self::Nothing => Resources::ZERO,
            Self::Ceiling(recorded) => recorded.proposal(),
            Self::Allocation(allotment) => allotment.proposal(),
        }
    }

    /// A permit waits for the cap. `false`: the cap will not rise for now.
    pub(crate) fn propose(&mut self, now: Moment, size: Resources) -> bool {
        match self {
            Self::Nothing => false,
            Self::Ceiling(recorded) => {
                recorded.propose(size);
                true
            }
            Self::Allocation(allotment) => allotment.propose(now, size),
        }
    }

    /// A proposal that waits for a kubelet ends with its agent's silence.
    pub(crate) fn forget(&mut self, now: Moment) {
        if let Some(allotment) = self.allotment_mut() {
            allotment.forget(now);
        }
    }

    /// The agent wants no more than this, and was promised `promised` of it.
    pub(crate) fn wants(&mut self, wanted: Resources, promised: Resources) {
        match self {
            Self::Nothing => {}
            Self::Ceiling(recorded) => recorded.wants(wanted, promised),
            Self::Allocation(allotment) => allotment.wants(wanted, promised),
        }
    }
}
