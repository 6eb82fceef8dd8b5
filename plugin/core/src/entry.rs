//! One VM in the books of its node.

use crate::ask::{Ask, Granted};
use crate::journal::Journal;
use crate::late::Answers;
use crate::tally::{Part, Want};
use std::sync::Arc;
use windlass_protocol::status::Booked;
use windlass_protocol::timing::CLAIM_LASTS;
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
    pub(crate) journal: Journal,
    /// No process sees what the VM has, and its agent asks over a network: a request may come late.
    pub(crate) is_remote: bool,
    answers: Answers,
}

/// Whether a VM is about to be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moving {
    /// It stays.
    No,
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
    wanted: Resources,
    pub(crate) until: Moment,
    /// It is granted in multiples of this; zero means any amount.
    grain: Resources,
}

// === impl Entry ===

impl Entry {
    pub(crate) fn new(name: VmName, record: VmRecord, basis: Basis) -> Self {
        let (name, journal) = (Arc::new(name), Journal::default());
        let (floor, answers) = (Resources::ZERO, Answers::default());
        let (claim, moving, is_remote) = (None, Moving::No, false);
        Self { name, record, basis, floor, claim, moving, journal, is_remote, answers }
    }

    /// What is reserved for it.
    pub(crate) fn reserved(&self) -> Resources {
        let most = self.basis.most().max(self.floor);
        Resources { cpu: most.cpu, mem: most.mem.round_up(self.record.memory_slot) }
    }

    /// Its agent asks: what it no longer wants is free, what it wants beyond becomes a claim.
    pub(crate) fn speak(&mut self, now: Moment, ask: &Ask, free: Resources) {
        if self.is_remote && !matches!(self.basis, Basis::Spoken { .. }) {
            self.answers.hear(now, ask.last_permit);
        }
        self.basis = match self.basis {
            Basis::Presumed(most) => {
                // An agent that names a permit below the ceiling keeps that permit.
                let least = if ask.last_permit.is_some() { Resources::ZERO } else { most };
                let reserved = self.reserved_again(least, ask, free);
                let permit = match ask.last_permit {
                    None if self.is_remote => self.still_used(now, reserved, ask),
                    Some(_) | None => reserved.min(ask.wanted),
                };
                Basis::Spoken { permit, has: Resources::ZERO }
            }
            // The ceiling counted because no agent had asked.
            Basis::Silent(most) => {
                let reserved = self.reserved_again(most, ask, free);
                Basis::Spoken { permit: reserved.min(ask.wanted), has: Resources::ZERO }
            }
            Basis::Spoken { permit, has } => {
                Basis::Spoken { permit: self.still_used(now, permit, ask), has }
            }
        };
        let enough = self.reserved().covers(ask.wanted);
        let stays = self.moving != Moving::No;
        self.claim = (!enough && !stays).then(|| Claim {
            wanted: ask.wanted,
            until: now.after(CLAIM_LASTS),
            grain: ask.grain(&self.record),
        });
    }

    /// What of its permit its agent may be using, now that it says this.
    fn still_used(&mut self, now: Moment, permit: Resources, ask: &Ask) -> Resources {
        if !self.is_remote {
            return permit.min(ask.wanted);
        }
        let slot = self.record.memory_slot;
        self.answers.used(now, permit, ask.wanted, ask.last_permit, slot)
    }

    /// Whether it keeps more than its agent was answered last, until that is known to be received.
    pub(crate) fn is_doubted(&self) -> bool {
        match self.basis {
            Basis::Presumed(_) | Basis::Silent(_) => false,
            Basis::Spoken { permit, .. } => self.is_remote && self.answers.is_below(permit),
        }
    }

    /// What is reserved for it: `most`, or more by the last permit of earlier books, as far as that is
    /// free.
    pub(crate) fn reserved_again(&self, most: Resources, ask: &Ask, free: Resources) -> Resources {
        let Some(last) = ask.last_permit else { return most };
        let known = self.reserved();
        let most_now = known.saturating_add(free);
        let slot = self.record.memory_slot;
        let last = last.min(Resources { mem: most_now.mem.round_down(slot), ..most_now });
        most.max(last)
    }

    /// The books answer its agent; a claim that is met ends.
    pub(crate) fn grant(&mut self, now: Moment, wanted: Resources, granted: &Granted) {
        let Granted { permit, short, moving } = granted;
        if self.is_remote {
            self.answers.answer(now, *permit);
        }
        self.basis = match self.basis {
            Basis::Presumed(has) | Basis::Silent(has) => Basis::Spoken { permit: *permit, has },
            // A part of a vCPU that its agent cannot be told of stays reserved: the VM may have it.
            Basis::Spoken { permit: before, has } => {
                Basis::Spoken { permit: permit.max(before), has }
            }
        };
        self.claim = self.claim.filter(|_| !short.is_empty());
        if *moving {
            self.moving = Moving::Told(*permit);
        }
        if !short.is_empty() {
            self.journal.write(now, wanted, *permit, short);
        }
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
