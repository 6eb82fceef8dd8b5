//! One VM in the books of its node.

use crate::ask::{Ask, Granted};
use crate::ceilings::Recorded;
use crate::cover::Cover;
use crate::heard::Heard;
use crate::journal::Journal;
use crate::late::Answers;
use crate::tally::{Part, Want};
use std::sync::Arc;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::status::Booked;
use windlass_protocol::timing::CLAIM_LASTS;
use windlass_protocol::{Axis, Bytes, MilliCpu, Moment, Resources, VmName, VmRecord};

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

    /// Whether this may be a late word of the agent of another VM that had the name: it names a last permit, as long as no agent has
    /// spoken.
    pub(crate) fn may_be_of_another(&mut self, now: Moment, ask: &Ask) -> bool {
        match self.basis {
            Basis::Silent(_) | Basis::Spoken { .. } => false,
            Basis::Presumed(_) => {
                let is_doubted = self.has_namesake && ask.last_permit.is_some();
                is_doubted && self.answers.may_be_of_another(now, ask.wanted)
            }
        }
    }

    /// Whoever asks is told what a VM of this entry has for sure, and no more than it says it has. Nothing of what was said changes what
    /// is reserved.
    pub(crate) fn answer_either(&mut self, now: Moment, ask: &Ask) -> Granted {
        let permit = match self.cover {
            Cover::Nothing => Resources::ZERO,
            // It does not grow meanwhile: a ceiling may have headroom that is not reserved, and a VM that counts with its maximum
            // may have been placed past the plugin, where there was no room for that.
            Cover::Ceiling(_) | Cover::Allocation(_) => {
                let has = self.promised().max(ask.last_permit.unwrap_or_default());
                self.told_at_once(ask.wanted.min(has).min(self.reserved()), ask)
            }
        };
        self.tell_early(now, permit);
        Granted { is_unrecorded: true, ..Granted::all(permit, false) }
    }

    /// What an agent that names no last permit may have been promised of what it asks for, as long as no
    /// agent has spoken and it is not sure that a later leader counts all that may have been promised.
    pub(crate) fn first_word(&self, ask: &Ask) -> Option<Resources> {
        match self.basis {
            Basis::Presumed(_) | Basis::Silent(_) if self.says_what_it_has(ask) => None,
            Basis::Presumed(_) | Basis::Silent(_) if ask.last_permit.is_none() => {
                let most = self.promised_before();
                (!self.may_be_told(most)).then(|| most.min(ask.wanted))
            }
            Basis::Presumed(_) | Basis::Silent(_) | Basis::Spoken { .. } => None,
        }
    }

    /// Whether what is asked for is what the VM has, and no resize of its pod is going to cover that. The agents of VMs whose
    /// ceilings are recorded say so, too: there the ceiling counts until it is covered.
    fn says_what_it_has(&self, ask: &Ask) -> bool {
        let is_fixed = self.cover.allotment().is_some_and(|it| !it.is_resizable());
        is_fixed && ask.names_permits && ask.last_permit.is_none()
    }

    /// The most that an earlier plugin may have promised, as long as no agent has spoken. What a pod asks for and its
    /// kubelet has not allocated was promised by none.
    pub(crate) fn promised_before(&self) -> Resources {
        match self.cover {
            Cover::Nothing | Cover::Ceiling(_) => self.reserved(),
            Cover::Allocation(_) => self.in_use(),
        }
    }

    /// Whether its agent can be told this at once: it was promised as much, or a later leader is sure to count as much.
    pub(crate) fn may_be_told(&self, permit: Resources) -> bool {
        self.cover.cap().is_none_or(|cap| cap.max(self.promised()).covers(permit))
    }

    /// As much of a permit as its agent can be told at once.
    pub(crate) fn told_at_once(&self, permit: Resources, ask: &Ask) -> Resources {
        let sure = match &self.cover {
            Cover::Nothing => return permit,
            // What its container requests counts without a ceiling; a part of a slot counts as a whole one.
            Cover::Ceiling(recorded) => {
                let alone = self.floor.min(recorded.alone.max(self.record.min));
                permit.min(recorded.cap().max(self.in_slots(alone)))
            }
            Cover::Allocation(allotment) => permit.min(allotment.cap()),
        };
        let cpu = MilliCpu::from_milli(ask.sayable(Axis::Cpu, sure.cpu.milli()));
        let mem = sure.mem.round_down(self.record.memory_slot);
        Resources { cpu, mem }.max(self.promised().min(permit))
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

    /// The books answer its agent, or have the answer wait.
    pub(crate) fn settle(
        &mut self,
        now: Moment,
        granted: Granted,
        ask: &Ask,
        above: Above,
    ) -> (Granted, bool) {
        let (granted, waits) = if self.may_be_told(granted.permit) {
            (granted, false)
        } else {
            self.above_its_ceiling(now, granted, ask, above)
        };
        if !waits {
            self.grant(now, ask.wanted, &granted);
        }
        (granted, waits)
    }

    /// What would be granted is above the cap: the answer waits, or is cut.
    pub(crate) fn above_its_ceiling(
        &mut self,
        now: Moment,
        granted: Granted,
        ask: &Ask,
        above: Above,
    ) -> (Granted, bool) {
        if let (Some(recorded), Some(unit)) = (self.cover.recorded_mut(), ask.unit) {
            recorded.step = unit.into();
        }
        if above == Above::Waits && self.propose(now, granted.permit) {
            return (granted, true);
        }
        let permit = self.told_at_once(granted.permit, ask);
        self.tell_early(now, permit);
        (Granted { permit, is_unrecorded: true, ..granted }, false)
    }

    /// Its agent is told this while no word of it counts.
    fn tell_early(&mut self, now: Moment, permit: Resources) {
        let is_early = matches!(self.basis, Basis::Presumed(_) | Basis::Silent(_));
        if is_early && self.cover.tell_early(permit) {
            self.answers.answer(now, permit);
        }
    }

    /// A permit is reserved, and waits until the cap covers it. `false`: that will not be so for now.
    fn propose(&mut self, now: Moment, permit: Resources) -> bool {
        let waits = self.cover.propose(now, permit);
        let reserved = self.reserved();
        self.claim = self.claim.filter(|claim| !reserved.covers(claim.wanted));
        waits
    }

    /// What was proposed is promised from here on.
    pub(crate) fn confirm(&mut self, proposal: Resources) {
        if let Basis::Spoken { permit, .. } = &mut self.basis {
            *permit = permit.max(proposal);
        }
    }

    /// Its agent asks: what it no longer wants is free, what it wants beyond becomes a claim.
    pub(crate) fn speak(&mut self, now: Moment, ask: &Ask, free: Resources) {
        if self.is_remote && !matches!(self.basis, Basis::Spoken { .. }) {
            self.answers.begin(now, ask.last_permit);
        }
        let told = self.cover.take_told_early();
        if let Basis::Presumed(most) | Basis::Silent(most) = &mut self.basis {
            *most = most.max(told);
        }
        // A request of before the last resize may name more than is allocated, and nothing covers that.
        let covered = self.cover.allotment().filter(|it| !it.is_of_another());
        let covered = covered.map(|it| it.cap().max(self.basis.most()));
        self.basis = match self.basis {
            Basis::Presumed(most) => {
                // An agent that names a permit below the ceiling keeps that permit.
                let least = if ask.last_permit.is_some() { Resources::ZERO } else { most };
                let reserved = self.reserved_again(least, ask, free);
                let reserved = covered.map_or(reserved, |covered| reserved.min(covered));
                let permit = match ask.last_permit {
                    None if self.says_what_it_has(ask) => reserved.min(ask.wanted),
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
        let promised = self.promised();
        self.cover.forget(now);
        self.cover.wants(ask.wanted, promised);
        let enough = self.reserved().covers(ask.wanted);
        let stays = self.moves();
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
        let used = self.answers.used(now, permit, ask.wanted, ask.last_permit, slot);
        // A part of a vCPU that its agent cannot be told of stays reserved: the VM may have it.
        let is_told = ask.sayable(Axis::Cpu, permit.cpu.milli()) == used.cpu.milli();
        let cpu = if is_told { permit.cpu.min(ask.wanted.cpu.max(used.cpu)) } else { used.cpu };
        Resources { cpu, ..used }
    }

    /// Whether it keeps more than its agent was answered last, until that is known to be received.
    pub(crate) fn is_doubted(&self) -> bool {
        match self.basis {
            Basis::Presumed(_) | Basis::Silent(_) => false,
            Basis::Spoken { permit, .. } => self.is_remote && self.answers.is_below(permit),
        }
    }

    /// What of its reservation its agent may be told again. What is doubted is reserved because the VM may have it; where more
    /// is reserved than there is room, by `over`, an agent that says what it has is told no more: if its word came late, the
    /// answer does so too, and is discarded.
    pub(crate) fn surely_has(&self, ask: &Ask, over: Resources) -> Resources {
        let reserved = self.reserved();
        let Some(last) = ask.last_permit.filter(|_| self.is_doubted()) else { return reserved };
        let told = last.max(self.cover.has()).min(reserved);
        Resources {
            cpu: if over.cpu.is_zero() { reserved.cpu } else { told.cpu },
            mem: if over.mem.is_zero() { reserved.mem } else { told.mem },
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
    fn grant(&mut self, now: Moment, wanted: Resources, granted: &Granted) {
        let Granted { permit, short, moving, is_unrecorded: _ } = granted;
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
