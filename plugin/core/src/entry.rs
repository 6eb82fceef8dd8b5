//! One VM in the books of its node.

use crate::ask::{Ask, Granted};
use crate::journal::Journal;
use crate::tally::{Part, Want};
use std::sync::Arc;
use windlass_protocol::status::Booked;
use windlass_protocol::timing::CLAIM_LASTS;
use windlass_protocol::{Axis, Bytes, Moment, Resources, VmName, VmRecord};

/// One VM in the books of its node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: Arc<VmName>,
    pub(crate) record: VmRecord,
    pub(crate) standing: Standing,
    pub(crate) claim: Option<Claim>,
    pub(crate) moving: Moving,
    pub(crate) journal: Journal,
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

/// On whose word a VM is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Standing {
    /// No agent has spoken for it, and nobody has seen it: it counts with the most that it may have
    /// been promised.
    Presumed(Resources),
    /// No agent has spoken for it: it counts with the most that it may have been promised, or
    /// with what it was seen to have since.
    Silent(Resources),
    /// An agent speaks for it.
    Spoken {
        /// What its agent may use.
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
    pub(crate) fn new(name: VmName, record: VmRecord, standing: Standing) -> Self {
        let (name, journal) = (Arc::new(name), Journal::default());
        Self { name, record, standing, claim: None, moving: Moving::No, journal }
    }

    /// What is promised to it.
    pub(crate) fn reserved(&self) -> Resources {
        let most = self.standing.most();
        Resources { cpu: most.cpu, mem: most.mem.round_up(self.record.memory_slot) }
    }

    /// Its agent speaks: what it no longer wants is given back, what it wants beyond is claimed.
    pub(crate) fn speak(&mut self, now: Moment, ask: &Ask, free: Resources) {
        self.standing = match self.standing {
            Standing::Presumed(most) => {
                // Who was promised less than the ceiling and says so gets no more unasked.
                let least = if ask.last_permit.is_some() { Resources::ZERO } else { most };
                let promised = self.promised_again(least, ask, free);
                Standing::Spoken { permit: promised.min(ask.wanted), has: Resources::ZERO }
            }
            // The ceiling was there for want of an agent's word.
            Standing::Silent(most) => {
                let promised = self.promised_again(most, ask, free);
                Standing::Spoken { permit: promised.min(ask.wanted), has: Resources::ZERO }
            }
            Standing::Spoken { permit, has } => {
                Standing::Spoken { permit: permit.min(ask.wanted), has }
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

    /// What earlier books had promised beyond what these know, as far as it is still free.
    pub(crate) fn promised_again(&self, most: Resources, ask: &Ask, free: Resources) -> Resources {
        let Some(last) = ask.last_permit else { return most };
        let known = self.reserved();
        let most_now = known.saturating_add(free);
        let slot = self.record.memory_slot;
        let last = last.min(Resources { mem: most_now.mem.round_down(slot), ..most_now });
        most.max(last)
    }

    /// It is told what it may have; a claim that is met is none any more.
    pub(crate) fn grant(&mut self, now: Moment, wanted: Resources, granted: &Granted) {
        let Granted { permit, short, moving } = granted;
        self.standing = match self.standing {
            Standing::Presumed(has)
            | Standing::Silent(has)
            | Standing::Spoken { permit: _, has } => Standing::Spoken { permit: *permit, has },
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
        // A permit is written in whole slots.
        let grain = match axis {
            Axis::Cpu => grain.cpu.milli(),
            Axis::Memory => grain.mem.max(memory_slot).round_up(memory_slot).bytes(),
        };
        // What is said in bytes takes the whole of its last slot.
        let missing = match axis {
            Axis::Cpu => missing,
            Axis::Memory => Bytes::from_bytes(missing).round_up(memory_slot).bytes(),
        };
        (missing > 0).then_some(Want { priority, missing, grain })
    }
}

// === impl Standing ===

impl Standing {
    pub(crate) fn most(self) -> Resources {
        match self {
            Self::Presumed(most) | Self::Silent(most) => most,
            Self::Spoken { permit, has } => permit.max(has),
        }
    }
}
