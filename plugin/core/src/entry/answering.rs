//! What the agent of a VM is told: what the VM was promised before, what the books grant, and how much of that a recorded
//! ceiling or an allocation covers. What nothing covers waits, or is cut.

use super::{Above, Basis, Entry, Moving};
use crate::ask::{Ask, Granted};
use crate::cover::Cover;
use windlass_protocol::{Axis, MilliCpu, Moment, Resources};

// === impl Entry ===

impl Entry {
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
}
