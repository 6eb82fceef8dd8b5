//! What became of the last resize of each axis, and when one like it may be tried again.
//!
//! An answer is not an effect: a hypervisor may accept a resize and not carry it out, or the
//! guest may take back what it gave. So the agent judges a resize by what it sees afterwards, answered
//! or not, and backs off from one without effect, longer each time. Each aim has a back-off of its
//! own: a DIMM that does not come out does not keep another from being plugged in.

use crate::backoff::{Backoff, Jitter};
use std::time::Duration;
use windlass_protocol::{Moment, Resize, Seen};

/// Why a resize is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Grow,
    Shrink,
    /// Keep what is there: the guest no longer agrees to a shrink under way.
    CallOff,
}

/// How many resizes were judged by what was seen after them, by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that asked for more.
    pub grow: Judged,
    /// Those that took something.
    pub shrink: Judged,
    /// Those that ended a shrink to which the guest no longer agreed.
    pub call_off: Judged,
}

/// How many resizes had an effect, and how many had none. One that had none when it was looked at
/// and has one after all counts as both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What was asked for was seen.
    pub seen: u64,
    /// It was accepted or lost, and nothing came of it.
    pub none: u64,
}

/// The last resizes of both axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResizeOutcomes {
    cpu: AxisOutcomes,
    memory: AxisOutcomes,
    limit: AxisOutcomes,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
struct AxisOutcomes {
    last: Option<Attempt>,
    grow: Backoff,
    shrink: Backoff,
    call_off: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Attempt {
    aim: Aim,
    resize: Resize,
    /// It had no effect when it was looked at; it may still have.
    failed: bool,
}

// === impl ResizeOutcomes ===

impl ResizeOutcomes {
    pub(crate) const fn new() -> Self {
        const FIRST: Duration = Duration::from_secs(1);
        // A guest short of memory waits for growth, and law 3 for a call-off.
        const SOON: Duration = Duration::from_secs(5);
        const RESTED: AxisOutcomes = AxisOutcomes {
            last: None,
            grow: Backoff::new(FIRST, SOON),
            shrink: Backoff::new(FIRST, Duration::from_secs(60)),
            call_off: Backoff::new(FIRST, SOON),
        };
        Self { cpu: RESTED, memory: RESTED, limit: RESTED }
    }

    pub(crate) fn sent(&mut self, aim: Aim, resize: Resize) {
        let attempt = Attempt { aim, resize, failed: false };
        let axis = match resize {
            Resize::Cpu(_) => &mut self.cpu,
            Resize::Memory(_) => &mut self.memory,
            Resize::Limit(_) => &mut self.limit,
        };
        axis.last = Some(attempt);
    }

    /// Judges by what is there. Says whether memory that was asked back is gone.
    pub(crate) fn see(
        &mut self,
        now: Moment,
        seen: Seen,
        jitter: &mut Jitter,
        tally: &mut Tally,
    ) -> bool {
        self.cpu.see(now, seen, jitter, tally);
        self.limit.see(now, seen, jitter, tally);
        self.memory.see(now, seen, jitter, tally) == Some(Aim::Shrink)
    }

    /// The back-off from another resize like this.
    pub(crate) const fn backoff(&self, aim: Aim, resize: Resize) -> &Backoff {
        let axis = match resize {
            Resize::Cpu(_) => &self.cpu,
            Resize::Memory(_) => &self.memory,
            Resize::Limit(_) => &self.limit,
        };
        match aim {
            Aim::Grow => &axis.grow,
            Aim::Shrink => &axis.shrink,
            Aim::CallOff => &axis.call_off,
        }
    }

    /// Until when memory that the guest or the hypervisor keeps is not asked for.
    pub(crate) fn memory_stays(&self, now: Moment) -> Option<Moment> {
        self.memory.shrink.lasts(now)
    }

    /// Whether memory is being taken by a resize of ours, or its call-off has yet to work.
    pub(crate) fn is_taking_memory(&self) -> bool {
        self.memory.last.is_some_and(|last| match last.aim {
            Aim::Grow => false,
            Aim::Shrink => !last.failed,
            Aim::CallOff => true,
        })
    }

    /// When a back-off ends by itself.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = Moment> {
        [&self.cpu, &self.memory, &self.limit]
            .into_iter()
            .flat_map(|axis| [&axis.grow, &axis.shrink])
            .filter_map(Backoff::ends)
    }
}

// === impl AxisOutcomes ===

impl AxisOutcomes {
    /// What worked, if something did.
    fn see(
        &mut self,
        now: Moment,
        seen: Seen,
        jitter: &mut Jitter,
        tally: &mut Tally,
    ) -> Option<Aim> {
        let attempt = self.last?;
        let (backoff, judged) = match attempt.aim {
            Aim::Grow => (&mut self.grow, &mut tally.grow),
            Aim::Shrink => (&mut self.shrink, &mut tally.shrink),
            Aim::CallOff => (&mut self.call_off, &mut tally.call_off),
        };
        match attempt.worked(seen) {
            Some(true) => {
                backoff.succeeded();
                judged.seen = judged.seen.saturating_add(1);
                self.last = None;
                return Some(attempt.aim);
            }
            Some(false) if !attempt.failed => {
                backoff.failed(now, jitter);
                judged.none = judged.none.saturating_add(1);
                self.last = Some(Attempt { failed: true, ..attempt });
            }
            Some(false) | None => {}
        }
        None
    }
}

// === impl Attempt ===

impl Attempt {
    /// Whether a look shows an effect; `None` if the guest is at it.
    fn worked(&self, seen: Seen) -> Option<bool> {
        let memory = seen.memory;
        let requested = memory.boot.saturating_add(memory.requested);
        let (worked, pending) = match (self.aim, self.resize) {
            (Aim::Grow | Aim::CallOff, Resize::Cpu(count)) => (seen.plugged >= count, false),
            (Aim::Shrink, Resize::Cpu(count)) => (seen.plugged <= count, false),
            (Aim::Grow | Aim::CallOff, Resize::Memory(total)) => (requested >= total, false),
            (Aim::Shrink, Resize::Memory(total)) => (memory.present() <= total, requested <= total),
            (_, Resize::Limit(None)) => (seen.limit == seen.found_limit, false),
            (Aim::Grow | Aim::CallOff, Resize::Limit(Some(limit))) => {
                (seen.limit.is_none_or(|has| has >= limit), false)
            }
            (Aim::Shrink, Resize::Limit(Some(limit))) => {
                (seen.limit.is_some_and(|has| has <= limit), false)
            }
        };
        (worked || !pending).then_some(worked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Bytes, MemorySeen, MilliCpu, RunState};

    const START: Moment = Moment::from_millis(10_000);
    const TAKING: Resize = Resize::Memory(Bytes::from_gib(1));

    #[test]
    fn memory_that_a_guest_takes_back_is_left_with_it_for_a_while() {
        let (mut outcomes, mut jitter, mut tally) = rested();
        let shrinks = |seen, none| Tally { shrink: Judged { seen, none }, ..Tally::default() };
        outcomes.sent(Aim::Shrink, TAKING);
        outcomes.see(START, has(1, 2), &mut jitter, &mut tally);
        assert_eq!(outcomes.memory_stays(START), None, "the guest is at it");
        assert!(outcomes.is_taking_memory());
        outcomes.see(START, has(2, 2), &mut jitter, &mut tally);
        assert!(outcomes.memory_stays(START).is_some(), "it took it back");
        assert!(outcomes.backoff(Aim::Grow, TAKING).is_over(START), "it may still grow");
        let until = outcomes.memory_stays(START);
        outcomes.see(START, has(2, 2), &mut jitter, &mut tally);
        assert_eq!(outcomes.memory_stays(START), until, "seen again, it is the same failure");
        assert_eq!(tally, shrinks(0, 1));
        outcomes.see(START, has(1, 1), &mut jitter, &mut tally);
        assert_eq!(outcomes.memory_stays(START), None, "late, but there");
        assert_eq!(tally, shrinks(1, 1));
    }

    #[test]
    fn a_resize_without_effect_is_a_failure() {
        let (mut outcomes, mut jitter, mut tally) = rested();
        let plug = Resize::Cpu(MilliCpu::from_cores(2));
        outcomes.sent(Aim::Grow, plug);
        outcomes.see(START, has(1, 1), &mut jitter, &mut tally);
        assert!(!outcomes.backoff(Aim::Grow, plug).is_over(START));
        assert!(outcomes.backoff(Aim::Grow, TAKING).is_over(START), "the other axis goes on");
    }

    fn rested() -> (ResizeOutcomes, Jitter, Tally) {
        (ResizeOutcomes::new(), Jitter::new(7), Tally::default())
    }

    /// One vCPU and this many GiB requested and present.
    fn has(requested: u64, present: u64) -> Seen {
        let boot = Bytes::from_mib(512);
        let above = |gib| Bytes::from_gib(gib).saturating_sub(boot);
        let memory = MemorySeen { boot, requested: above(requested), size: above(present) };
        Seen {
            plugged: MilliCpu::from_cores(1),
            limit: None,
            found_limit: None,
            memory,
            state: RunState::Running,
        }
    }
}
