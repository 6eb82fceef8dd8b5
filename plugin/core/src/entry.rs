//! One VM in the books of its node: what is reserved for it, and on what that is based.

mod answering;
mod speaking;

use crate::ceilings::Recorded;
use crate::cover::Cover;
use crate::heard::Heard;
use crate::journal::Journal;
use crate::late::Answers;
use crate::tally::{Part, Want};
use std::sync::Arc;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::status::Booked;
use windlass_protocol::{Axis, Bytes, Moment, Resources, VmName, VmRecord};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: Arc<VmName>,
    pub(crate) record: VmRecord,
    pub(crate) basis: Basis,
    /// Whatever its agent says, no less than this is reserved.
    pub(crate) floor: Resources,
    pub(crate) claim: Option<Claim>,
    pub(crate) moving: Moving,
    /// Another pod of its VM waits for a place.
    pub(crate) is_awaited: bool,
    /// What covers what its agent may be told.
    pub(crate) cover: Cover,
    pub(crate) journal: Journal,
    /// No process sees what the VM has, and its agent asks over a network: a request may come late.
    pub(crate) is_remote: bool,
    /// Whether a first word may be one of the agent of another VM of this name.
    pub(crate) has_namesake: bool,
    pub(crate) heard: Heard,
    answers: Answers,
}

/// A plugin of 1,000 listed VMs keeps to 12 MiB, most of which are the program itself; in a cluster there are 40,000. What few VMs
/// have at a time belongs in a box.
const _: () = assert!(size_of::<Entry>() <= 344, "an entry of the books grew");

/// What becomes of an answer above the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Above {
    /// It waits.
    Waits,
    /// It is cut.
    IsCut,
}

/// Whether a VM is about to be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moving {
    /// It stays.
    No,
    /// Another pod was placed for what its VM has: it does not grow. Its agent is not told, and may shrink it.
    Held,
    /// Its agent is to be told.
    Due,
    /// Its agent was told, while it was permitted this.
    Told(Resources),
}

/// What the VM's reservation is based on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Basis {
    /// No agent has spoken for the VM, and no look at its hypervisor was reported: it counts with the
    /// most that may have been reserved for it.
    Presumed(Resources),
    /// No agent has spoken for the VM: it counts with the most that may have been reserved for it, or
    /// with what it was seen to have since.
    Silent(Resources),
    /// An agent speaks for the VM.
    Spoken {
        /// What the books granted, which its agent may use.
        permit: Resources,
        /// What it was last seen to have.
        has: Resources,
    },
}

/// What a VM wants beyond what is reserved for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) wanted: Resources,
    pub(crate) until: Moment,
    /// It is granted in multiples of this; zero means any amount.
    grain: Resources,
}

// === impl Entry ===

impl Entry {
    pub(crate) fn new(name: Arc<VmName>, record: VmRecord, basis: Basis) -> Self {
        let (journal, answers, heard) = Default::default();
        let floor = Resources::ZERO;
        let (claim, moving, cover) = (None, Moving::No, Cover::Nothing);
        let (is_remote, has_namesake, is_awaited) = (false, false, false);
        Self {
            name,
            record,
            basis,
            floor,
            claim,
            moving,
            is_awaited,
            cover,
            journal,
            is_remote,
            has_namesake,
            heard,
            answers,
        }
    }

    /// What is reserved for it.
    pub(crate) fn reserved(&self) -> Resources {
        let above = self.cover.proposal().max(self.cover.told_early()).max(self.cover.has());
        self.in_slots(self.basis.most().max(self.floor).max(above))
    }

    /// What a later leader may count it with, where ceilings are recorded.
    pub(crate) fn counted_later(&self) -> Resources {
        let ceiling = self.cover.recorded().map(Recorded::most);
        self.reserved().max(ceiling.unwrap_or_default())
    }

    /// Whether it moves, or another pod was placed for what its VM has: it does not grow.
    pub(crate) fn moves(&self) -> bool {
        self.moving != Moving::No
    }

    /// What its agent may use already.
    fn promised(&self) -> Resources {
        match self.basis {
            Basis::Presumed(_) | Basis::Silent(_) => self.cover.told_early(),
            Basis::Spoken { permit, has: _ } => permit,
        }
    }

    /// Whether its pod is resized, and neither that nor a recorded ceiling covers what it was permitted before.
    pub(crate) fn is_unrecorded(&self) -> bool {
        let (in_use, least) = (self.in_use(), self.record.min);
        self.cover.allotment().is_some_and(|it| it.is_unrecorded(in_use, least))
    }

    /// The ceiling that is to be recorded then: what is known of it, and the next.
    pub(crate) fn ceiling_of_before(&mut self, epoch: u64) -> Option<(Option<Ceiling>, Ceiling)> {
        let size = self.in_slots(self.in_use());
        let is_due = self.is_unrecorded();
        let allotment = self.cover.allotment_mut().filter(|_| is_due)?;
        Some(allotment.next_ceiling(epoch, size))
    }

    /// What it may have, whatever its pod requests.
    pub(crate) fn in_use(&self) -> Resources {
        self.basis.most().max(self.cover.told_early()).max(self.cover.has())
    }

    /// The same, with what waits for its kubelet; `None`: no agent has asked for anything.
    pub(crate) fn needed(&self) -> Option<Resources> {
        let proposal = self.cover.proposal();
        match self.basis {
            Basis::Presumed(_) | Basis::Silent(_) if proposal == Resources::ZERO => None,
            Basis::Presumed(_) | Basis::Silent(_) | Basis::Spoken { .. } => {
                Some(self.in_use().max(proposal))
            }
        }
    }

    fn in_slots(&self, size: Resources) -> Resources {
        Resources { mem: size.mem.round_up(self.record.memory_slot), ..size }
    }

    pub(crate) fn booked(&self, now: Moment) -> Booked {
        Booked {
            name: (*self.name).clone(),
            priority: self.record.priority,
            reserved: self.reserved(),
            claim: self.claim.filter(|claim| now < claim.until).map(|claim| claim.wanted),
        }
    }

    /// What it adds to the figures of its node.
    pub(crate) fn part(&self) -> Part {
        let reserved = self.reserved();
        let VmRecord { min, priority, .. } = self.record;
        let wants = [Axis::Cpu, Axis::Memory].map(|axis| self.want_on(axis, reserved));
        Part { reserved, min, priority, claim: self.claim.map(|claim| claim.wanted), wants }
    }

    fn want_on(&self, axis: Axis, reserved: Resources) -> Option<Want> {
        let Claim { wanted, grain, .. } = self.claim?;
        let missing = axis.of(wanted).saturating_sub(axis.of(reserved));
        let VmRecord { priority, memory_slot, .. } = self.record;
        let (missing, grain) = match axis {
            Axis::Cpu => (missing, grain.cpu.milli()),
            Axis::Memory => {
                // What is said in bytes takes the whole of its last slot.
                let missing = Bytes::from_bytes(missing).round_up(memory_slot);
                // A permit is written in whole slots.
                let grain = grain.mem.max(memory_slot).round_up(memory_slot);
                (missing.bytes(), grain.bytes())
            }
        };
        (missing > 0).then_some(Want { priority, missing, grain })
    }
}

// === impl Basis ===

impl Basis {
    pub(crate) fn most(self) -> Resources {
        match self {
            Self::Presumed(most) | Self::Silent(most) => most,
            Self::Spoken { permit, has } => permit.max(has),
        }
    }
}
