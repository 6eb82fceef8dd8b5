//! The agent of a VM speaks: what its request changes of what is reserved for the VM.
//!
//! What the agent no longer wants is free, but for what it may be using: a request may come late, and an answer may be lost. A
//! first request sets right what was reserved while no agent had spoken.

use super::{Basis, Claim, Entry};
use crate::ask::Ask;
use windlass_protocol::timing::CLAIM_LASTS;
use windlass_protocol::{Axis, Moment, Resources};

// === impl Entry ===

impl Entry {
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

    /// Whether what is asked for is what the VM has, and no resize of its pod is going to cover that. The agents of VMs whose
    /// ceilings are recorded say so, too: there the ceiling counts until it is covered.
    pub(super) fn says_what_it_has(&self, ask: &Ask) -> bool {
        let is_fixed = self.cover.allotment().is_some_and(|it| !it.is_resizable());
        is_fixed && ask.names_permits && ask.last_permit.is_none()
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
}
