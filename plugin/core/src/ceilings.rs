//! The recorded ceiling of one VM: what a later leader is sure to count the VM with.
//!
//! A permit within the *cap* is answered at once; a permit above it is a *proposal*, which is reserved and waits
//! until a higher ceiling is recorded. Uncertainty is a state: the cap is what the API server confirmed to this
//! plugin, and nothing else. A watch may be late and an earlier leader's write may be under way, so a ceiling that
//! is only seen lowers the cap and never raises it. A cap falls before the write of a lower ceiling is sent, and
//! rises after the write of a higher one is confirmed.
//!
//! A write is sent with the ceiling that it replaces, and takes effect on that text alone. Each write has a higher
//! number than every ceiling that was seen, so no text returns, and a late write finds another text.

use std::time::Duration;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

/// The number of the ceiling that a binding records.
const OF_BINDING: u64 = 1;

/// A ceiling has been too high for this long before it is lowered.
const LOWERED_AFTER: Duration = Duration::from_secs(300);

/// A watch that shows an older ceiling than the API server confirmed tells the truth after this long.
const BELIEVED_AFTER: Duration = Duration::from_secs(30);

/// As many of the ceilings that were written last are remembered.
const OWN: usize = 4;

/// The step of a VM whose agent has named no compute unit.
const STEP: Resources = Resources::new(MilliCpu::from_cores(1), Bytes::from_gib(1));

/// What the object of a VM, which may be its pod, says of the VM's ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The maximum of the VM's bounds.
    pub max: Resources,
    /// The annotation, if it is readable.
    pub shown: Option<Ceiling>,
    /// What the VM has by an object that is not its pod; else zero.
    pub has: Resources,
    /// What its own container has for sure: a later leader counts no less, without a ceiling and in each mode.
    pub alone: Resources,
}

/// A ceiling to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CeilingWrite {
    /// The VM, by its pod.
    pub vm: VmName,
    /// What the annotation is believed to say; `None`: it is absent or unreadable.
    pub known: Option<Ceiling>,
    /// What it is to say.
    pub next: Ceiling,
}

/// The ceiling that a binding records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstCeiling {
    /// What the annotation is to say.
    pub recorded: Ceiling,
    /// What it said before the binding.
    pub replaced: Option<Ceiling>,
}

/// What the books know of the recorded ceiling of a VM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    max: Resources,
    /// The compute unit of the VM's agent.
    pub(crate) step: Resources,
    /// The largest size that a later leader is sure to count; zero: none is sure.
    cap: Resources,
    /// What an agent was told before any word of it counts: the VM may have it.
    pub(crate) told_early: Resources,
    /// What is granted above the cap, and reserved until a ceiling is recorded.
    proposal: Option<Resources>,
    /// What the VM has by its object, whatever its agent says.
    pub(crate) has: Resources,
    /// What its own container has for sure.
    pub(crate) alone: Resources,
    /// The ceiling in force, as far as is known.
    known: Option<Ceiling>,
    /// What the watch said last.
    shown: Option<Ceiling>,
    /// The highest number of a ceiling so far.
    number: u64,
    /// A write whose outcome is not known yet.
    under_way: Option<Ceiling>,
    /// What these books had written last, whatever became of it, the newest first.
    own: Vec<Ceiling>,
    /// A write is called for, by a proposal or by a ceiling that is too high or too low.
    is_due: bool,
    /// Since when the ceiling is too high.
    high_since: Option<Moment>,
    /// Since when the watch shows an older ceiling than the one in force.
    behind_since: Option<Moment>,
}

// === impl Recorded ===

impl Recorded {
    pub(crate) fn new(kept: Kept) -> Self {
        let Kept { max, shown, has, alone } = kept;
        Self {
            max,
            has,
            alone,
            step: STEP,
            cap: Resources::ZERO,
            told_early: Resources::ZERO,
            proposal: None,
            known: shown,
            shown,
            number: shown.map_or(OF_BINDING, |shown| shown.write.max(OF_BINDING)),
            under_way: None,
            own: Vec::new(),
            is_due: false,
            high_since: None,
            behind_since: None,
        }
    }

    /// The watch shows the pod. As long as it has not shown the ceiling in force, what it shows may be an older one.
    pub(crate) fn shown(&mut self, kept: Kept) {
        let is_behind = self.shown != self.known;
        let shown = kept.shown;
        (self.max, self.shown, self.has, self.alone) = (kept.max, shown, kept.has, kept.alone);
        let is_older = |seen: Ceiling| self.known.is_some_and(|known| seen.order() < known.order());
        match shown {
            Some(seen) if self.known == Some(seen) || (is_behind && is_older(seen)) => {}
            Some(seen) => self.take(seen),
            None if is_behind => {}
            // The maximum counts, which covers what was promised.
            None => self.known = None,
        }
    }

    /// The API server said that the annotation is this, in answer to a read.
    pub(crate) fn read(&mut self, read: Option<Ceiling>) {
        match read {
            Some(read) => self.take(read),
            None => self.known = None,
        }
    }

    /// What is promised above the cap waits for a write.
    pub(crate) fn propose(&mut self, size: Resources) {
        self.proposal = Some(self.proposal.unwrap_or_default().max(size));
        self.is_due = true;
    }

    /// The agent wants no more than this, and was promised `promised` of it.
    pub(crate) fn wants(&mut self, wanted: Resources, promised: Resources) {
        let proposal = self.proposal.map(|proposal| proposal.min(wanted));
        self.proposal = proposal.filter(|proposal| !promised.covers(*proposal));
    }

    /// The write that is called for, if any: its size is `size`, which covers the proposal and all that was promised.
    pub(crate) fn send(
        &mut self,
        epoch: u64,
        size: Resources,
    ) -> Option<(Option<Ceiling>, Ceiling)> {
        if !self.is_due {
            return None;
        }
        let next = next(self.known, self.number, epoch, size);
        (self.number, self.is_due, self.under_way) = (next.write, false, Some(next));
        self.own.truncate(OWN - 1);
        self.own.insert(0, next);
        // A lower ceiling may be in force from here on.
        self.cap = self.cap.min(size);
        Some((self.known, next))
    }

    /// Whether these books had this ceiling written: its headroom is promised to no agent yet.
    pub(crate) fn is_own(&self, shown: Ceiling) -> bool {
        self.own.contains(&shown)
    }

    /// The write that is under way is to be made once more.
    pub(crate) fn again(&mut self) {
        self.is_due |= self.under_way.take().is_some();
    }

    /// A later leader is sure to read this ceiling. What was proposed and is now promised.
    pub(crate) fn confirm(&mut self, written: Ceiling) -> Option<Resources> {
        if self.under_way != Some(written) {
            return None;
        }
        self.under_way = None;
        (self.known, self.cap) = (Some(written), written.size);
        (self.high_since, self.behind_since) = (None, None);
        self.proposal.take_if(|proposal| written.size.covers(*proposal))
    }

    /// The binding recorded this ceiling. Whoever has changed it since has the last word.
    pub(crate) fn bound(&mut self, first: FirstCeiling) {
        let FirstCeiling { recorded, replaced } = first;
        let is_in_force = [None, replaced, Some(recorded)].contains(&self.known);
        if is_in_force && self.cap == Resources::ZERO && self.under_way.is_none() {
            (self.known, self.cap) = (Some(recorded), recorded.size);
        }
    }

    /// No ceiling is written: whether the last write took effect or not, the cap holds.
    pub(crate) fn give_up(&mut self) {
        (self.proposal, self.under_way, self.is_due) = (None, None, false);
    }

    pub(crate) fn proposal(&self) -> Resources {
        self.proposal.unwrap_or_default()
    }

    /// The highest number of a ceiling so far.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn cap(&self) -> Resources {
        self.cap
    }

    /// The ceiling in force, as far as is known.
    pub(crate) const fn known(&self) -> Option<Ceiling> {
        self.known
    }

    /// The largest ceiling that may be in force; nothing, if none is known.
    pub(crate) fn most(&self) -> Resources {
        let known = self.known.map(|known| known.size).unwrap_or_default();
        self.cap.max(known).max(self.under_way.map(|write| write.size).unwrap_or_default())
    }

    /// The ceiling of a VM that needs `needed`, where the ceilings of other VMs leave `room` of the node.
    pub(crate) fn rounded(
        &self,
        needed: Resources,
        grain: Resources,
        room: Resources,
    ) -> Resources {
        let wish = generous(needed, self.step.max(grain), self.max);
        Resources {
            cpu: if wish.cpu <= room.cpu { wish.cpu } else { needed.cpu },
            mem: if wish.mem <= room.mem { wish.mem } else { needed.mem },
        }
    }

    /// Looks at the ceiling of a VM that needs `needed`, on a node whose ceilings exceed its room by `over`: whether a
    /// write is called for. What the write lowers is taken off `over`. A VM that leaves its node needs no headroom: the node
    /// that it moves to has to have room for its ceiling.
    pub(crate) fn look(
        &mut self,
        now: Moment,
        (needed, grain): (Resources, Resources),
        leaves: bool,
        over: &mut Resources,
    ) -> bool {
        self.believe(now);
        if self.under_way.is_some() || self.is_due {
            return self.under_way.is_none();
        }
        let most = self.most();
        let spared = most.saturating_sub(needed);
        let is_crowded = !spared.cpu.min(over.cpu).is_zero() || !spared.mem.min(over.mem).is_zero();
        let generous = generous(needed, self.step.max(grain), self.max);
        let wish = if leaves { needed } else { generous };
        let high_since = (!wish.covers(most)).then(|| self.high_since.unwrap_or(now));
        self.high_since = high_since;
        let is_high = high_since.is_some_and(|since| leaves || now >= since.after(LOWERED_AFTER));
        let is_low = self.known.is_none_or(|known| !known.size.covers(needed));
        if is_crowded {
            *over = over.saturating_sub(spared);
        }
        self.is_due = is_crowded || is_high || is_low;
        self.is_due
    }

    /// A list may be a little older than what the API server confirmed. What stays so long is the truth: the API
    /// server lost what it had, or a person put it back.
    fn believe(&mut self, now: Moment) {
        let is_behind = self.under_way.is_none() && self.shown != self.known;
        self.behind_since = is_behind.then(|| self.behind_since.unwrap_or(now));
        if self.behind_since.is_some_and(|since| now >= since.after(BELIEVED_AFTER)) {
            self.behind_since = None;
            match self.shown {
                Some(shown) => self.take(shown),
                None => (self.known, self.cap) = (None, Resources::ZERO),
            }
        }
    }

    fn take(&mut self, seen: Ceiling) {
        self.known = Some(seen);
        self.number = self.number.max(seen.write);
        self.cap = self.cap.min(seen.size);
    }
}

// === impl FirstCeiling ===

impl FirstCeiling {
    /// Of this epoch and this size.
    pub const fn new(epoch: u64, size: Resources, replaced: Option<Ceiling>) -> Self {
        Self { recorded: Ceiling { epoch, write: OF_BINDING, size }, replaced }
    }
}

/// The ceiling that replaces `known`, in this epoch and with a number after this one.
pub(crate) fn next(known: Option<Ceiling>, number: u64, epoch: u64, size: Resources) -> Ceiling {
    // Epochs begin anew with a new Lease: what is recorded never goes back.
    let epoch = known.map_or(epoch, |known| epoch.max(known.epoch));
    // Only a forged number is the last one. After it the numbers begin anew: a text may return then, but the VM grows.
    let last = if number < Ceiling::LAST_WRITE { number.max(OF_BINDING) } else { OF_BINDING };
    Ceiling { epoch, write: last.saturating_add(1), size }
}

/// A size with headroom: a quarter of it, at least one step, in whole steps and no more than the maximum.
fn generous(needed: Resources, step: Resources, max: Resources) -> Resources {
    let quarter = Resources {
        cpu: MilliCpu::from_milli(needed.cpu.milli() / 4),
        mem: Bytes::from_bytes(needed.mem.bytes() / 4),
    };
    needed.saturating_add(quarter.max(step)).round_up(step).min(max).max(needed)
}

/// Whether a binding recorded this ceiling, and no permit raised it since.
pub(crate) const fn is_of_binding(ceiling: Ceiling) -> bool {
    ceiling.write == OF_BINDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_has_a_quarter_of_headroom_and_at_least_a_step() {
        for (needed, step, max, ceiling) in [
            ((1000, 1024), (1000, 1024), (8000, 8192), (2000, 2048)),
            ((8000, 8192), (1000, 1024), (64_000, 65_536), (10_000, 10_240)),
            ((5000, 5120), (1000, 1024), (64_000, 65_536), (7000, 7168)),
            ((3000, 3072), (1000, 1024), (3000, 4096), (3000, 4096)),
            ((3000, 3000), (250, 512), (8000, 8192), (3750, 4096)),
            // Bounds that were lowered below what the VM was promised.
            ((4000, 4096), (1000, 1024), (2000, 2048), (4000, 4096)),
            ((0, 0), (1000, 1024), (4000, 4096), (1000, 1024)),
        ] {
            let said = format!("{needed:?} in steps of {step:?} up to {max:?}");
            assert_eq!(generous(size(needed), size(step), size(max)), size(ceiling), "{said}");
        }
    }

    #[test]
    fn headroom_is_for_room_that_no_other_ceiling_has() {
        let none = Resources::ZERO;
        let kept = Kept { max: size((8000, 8192)), shown: None, has: none, alone: none };
        let recorded = Recorded::new(kept);
        for (room, ceiling) in [
            ((4000, 4096), (2000, 2048)),
            ((2000, 2048), (2000, 2048)),
            ((1999, 2048), (1000, 2048)),
            ((4000, 2047), (2000, 1024)),
            ((0, 0), (1000, 1024)),
        ] {
            let rounded = recorded.rounded(size((1000, 1024)), size((1000, 128)), size(room));
            assert_eq!(rounded, size(ceiling), "{room:?}");
        }
    }

    fn size((milli, mib): (u64, u64)) -> Resources {
        Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(mib))
    }
}
