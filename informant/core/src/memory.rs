//! Consent to less memory, and urgent requests for more.
//!
//! Used memory is `MemTotal` less `MemAvailable`. The VM has more than `MemTotal`: the kernel does not manage
//! its own image, its page tables and the firmware's holes. This overhead is the number of present pages less
//! managed pages, over all zones but those for hot-added memory. If it cannot be read, it is [`OVERHEAD`],
//! the reference's estimate (`SysBuffer`).
//!
//! - **Consent.** The guest agrees to less memory only if its recent peak use fits, with [`margin`] to spare.
//!   It always agrees to a size that is not smaller than the VM's.
//! - **Urgency.** The guest needs memory at once if less than [`threshold`] is available, or if the kernel
//!   reports that tasks wait for memory and almost none is free.
//!
//! The margin is the threshold of the smaller size plus [`HEADROOM`]. So a size is never urgent right after
//! the consent to it: shrinks and urgent requests do not alternate.

use crate::event::Memory;
use std::collections::VecDeque;
use std::time::Duration;
use windlass_protocol::informant::DownscaleResult;
use windlass_protocol::timing::CALLS_AGAIN_AFTER;
use windlass_protocol::{Bytes, Moment};

/// The kernel's overhead, if it cannot be read.
pub const OVERHEAD: Bytes = Bytes::from_mib(100);

/// The distance between refusal of a shrink and urgency. The fastest burst that the project promises to
/// follow, 16 MiB every 250 ms, needs half a second to cross it: several samples.
pub const HEADROOM: Bytes = Bytes::from_mib(32);

/// The part of total memory that must be available: 15 % as in the reference's successor (which asks above
/// 85 %), but enough for an answer in a small guest, and no waste in a large guest.
const THRESHOLD_PERCENT: u64 = 15;
const THRESHOLD_LEAST: Bytes = Bytes::from_mib(64);
const THRESHOLD_MOST: Bytes = Bytes::from_gib(1);

/// The time whose peak use decides consent. Longer than a pause of a garbage collector, no longer than the
/// agent's deadline.
const WINDOW: Duration = Duration::from_secs(2);

/// The length of a slot of samples; slots keep their number independent of their rate.
const SLOT: Duration = Duration::from_millis(100);

/// The fewest slots in the window for consent (the reference's successor averages five samples, 100 ms
/// apart).
const ENOUGH: usize = 5;

/// Older samples are stale.
const FRESH: Duration = Duration::from_secs(1);

/// After a stall the guest refuses to shrink for this long.
const QUIET: Duration = Duration::from_secs(10);

/// The state of the guest's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// The start of each slot, and its peak use; bounded by the window.
    slots: VecDeque<(Moment, Bytes)>,
    last: Option<(Moment, Memory)>,
    /// The last stall that more memory would have avoided.
    stalled: Option<Moment>,
    /// The last request for memory.
    asked: Option<Moment>,
    /// The last `/upscale`.
    given: Option<Moment>,
}

impl Watch {
    /// Takes a sample; ignores an inconsistent one.
    pub(crate) fn sampled(&mut self, now: Moment, memory: Memory) {
        if memory.total.is_zero() || memory.available > memory.total {
            return;
        }
        let used = memory.total.saturating_sub(memory.available);
        match self.slots.back_mut() {
            Some((began, most)) if now.since(*began) < SLOT => *most = used.max(*most),
            Some(_) | None => self.slots.push_back((now, used)),
        }
        while self.slots.front().is_some_and(|(began, _)| now.since(*began) > WINDOW) {
            self.slots.pop_front();
        }
        self.last = Some((now, memory));
    }

    /// Tasks waited for memory. The stall counts only if almost no memory is free: otherwise a limit within
    /// the guest caused it, which more memory does not lift.
    pub(crate) fn stalled(&mut self, now: Moment) {
        let full = self.fresh(now).is_some_and(|memory| memory.free < threshold(memory.total));
        if full {
            self.stalled = Some(now);
        }
    }

    /// The VM got memory: earlier shortages no longer count.
    pub(crate) fn given(&mut self, now: Moment) {
        self.given = Some(now);
    }

    /// The informant asked for memory.
    pub(crate) fn asked(&mut self, now: Moment) {
        self.asked = Some(now);
    }

    /// When to ask for memory, if the guest needs it.
    pub(crate) fn want(&self, now: Moment) -> Option<Moment> {
        let after_gift = |at: &Moment| self.given.is_none_or(|given| *at > given);
        let short = self
            .last
            .filter(|(at, _)| now.since(*at) <= FRESH && after_gift(at))
            .is_some_and(|(_, memory)| memory.available < threshold(memory.total));
        let stalled =
            self.stalled.filter(after_gift).is_some_and(|at| now.since(at) <= CALLS_AGAIN_AFTER);
        (short || stalled)
            .then(|| self.asked.map_or(now, |asked| asked.after(CALLS_AGAIN_AFTER).max(now)))
    }

    /// Whether the guest agrees to a size of `asked`.
    pub(crate) fn consent(&self, now: Moment, asked: Bytes) -> DownscaleResult {
        let answer = |ok, status| DownscaleResult { ok, status };
        let Some(memory) = self.fresh(now) else {
            return answer(false, "memory was not read within the last second".to_owned());
        };
        let overhead = memory.overhead.unwrap_or(OVERHEAD);
        let has = memory.total.saturating_add(overhead);
        if asked >= has {
            return answer(true, format!("{asked} is no less than the VM has"));
        }
        let slots = self.slots.iter().filter(|(began, _)| now.since(*began) <= WINDOW);
        let (count, used) = slots.fold((0, Bytes::ZERO), |(n, most), (_, u)| (n + 1, most.max(*u)));
        if count < ENOUGH {
            let few = format!("memory was read {count} times lately, {ENOUGH} are needed");
            return answer(false, few);
        }
        if let Some(at) = self.stalled.filter(|at| now.since(*at) < QUIET) {
            let ago = now.since(at).as_secs();
            let quiet =
                format!("tasks waited for memory {ago}s ago, and no less than 10s must pass");
            return answer(false, quiet);
        }
        let usable = asked.saturating_sub(overhead);
        let margin = margin(usable);
        let ok = used.saturating_add(margin) <= usable;
        let verdict = if ok { "fit" } else { "do not fit" };
        let status = format!(
            "{used} in use and {margin} to spare {verdict} in {usable}, \
             which is {asked} less {overhead} for the kernel"
        );
        answer(ok, status)
    }

    fn fresh(&self, now: Moment) -> Option<Memory> {
        self.last.filter(|(at, _)| now.since(*at) <= FRESH).map(|(_, memory)| memory)
    }
}

/// The amount of `total` that must be available.
pub fn threshold(total: Bytes) -> Bytes {
    let part = Bytes::from_bytes(total.bytes() / 100 * THRESHOLD_PERCENT);
    part.clamp(THRESHOLD_LEAST, THRESHOLD_MOST)
}

/// The amount that must be to spare for consent to `usable`.
pub fn margin(usable: Bytes) -> Bytes {
    threshold(usable).saturating_add(HEADROOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of this much memory 150 MiB must be available.
    const TOTAL: Bytes = Bytes::from_mib(1000);
    const ONE: Bytes = Bytes::from_bytes(1);
    const PLENTY: Bytes = Bytes::from_mib(900);
    const BEGAN: Moment = Moment::from_millis(1_000_000);

    #[test]
    fn the_threshold_is_a_part_of_the_total_between_two_limits() {
        for (total, least) in
            [(0, 64), (426, 64), (427, 64), (1000, 150), (2000, 300), (6826, 1023), (8192, 1024)]
        {
            assert_eq!(threshold(Bytes::from_mib(total)).mib(), least, "{total}");
        }
    }

    #[test]
    fn memory_is_wanted_while_less_than_the_threshold_is_available() {
        for (available, wanted) in [(below(), true), (threshold(TOTAL), false)] {
            let mut watch = Watch::default();
            watch.sampled(BEGAN, Memory { available, ..memory() });
            assert_eq!(watch.want(BEGAN), wanted.then_some(BEGAN), "{available}");
            assert_eq!(watch.want(at(1_000)), wanted.then_some(at(1_000)), "{available}");
            assert_eq!(watch.want(at(1_001)), None, "that is too old");
        }
    }

    #[test]
    fn a_stall_counts_where_next_to_nothing_is_free() {
        for (free, read, stalled, wanted) in [
            (below(), 0, 0, true),
            (below(), 0, 1_000, true),
            (below(), 0, 1_001, false),
            (threshold(TOTAL), 0, 0, false),
        ] {
            let mut watch = Watch::default();
            watch.sampled(at(read), Memory { free, ..memory() });
            watch.stalled(at(stalled));
            assert_eq!(watch.want(at(stalled)).is_some(), wanted, "{free}, {stalled} ms later");
            assert_eq!(watch.want(at(stalled + 1_000)).is_some(), wanted);
            assert_eq!(watch.want(at(stalled + 1_001)), None, "it is asked for at most once more");
        }
    }

    #[test]
    fn memory_is_asked_for_once_in_a_second_until_it_is_given() {
        let mut watch = Watch::default();
        let short = Memory { available: below(), free: below(), ..memory() };
        watch.sampled(BEGAN, short);
        watch.asked(BEGAN);
        assert_eq!(watch.want(at(10)), Some(at(1_000)));
        watch.sampled(at(1_500), short);
        watch.stalled(at(1_500));
        assert_eq!(watch.want(at(1_500)), Some(at(1_500)));
        watch.given(at(1_500));
        assert_eq!(watch.want(at(1_500)), None, "what was read before says nothing of it");
        watch.sampled(at(1_501), short);
        assert_eq!(watch.want(at(1_501)), Some(at(1_501)));
    }

    #[test]
    fn less_is_agreed_to_up_to_the_last_byte_that_is_to_spare() {
        let watch = sampled(&[PLENTY; 5]);
        // 100 MiB are in use, and with no more than this to spare a shrink is refused.
        let least = TOTAL.saturating_sub(PLENTY).saturating_add(Bytes::from_mib(64 + 32));
        let asked = least.saturating_add(OVERHEAD);
        assert!(watch.consent(at(400), asked).ok);
        assert!(!watch.consent(at(400), asked.saturating_sub(ONE)).ok);
        let has = TOTAL.saturating_add(OVERHEAD);
        let full = sampled(&[below(); 5]);
        assert!(full.consent(at(400), has).ok, "it is no less than the VM has");
        assert!(!full.consent(at(400), has.saturating_sub(ONE)).ok);
        assert!(!full.consent(at(1_401), has).ok, "memory was not read lately");
    }

    #[test]
    fn less_is_agreed_to_after_five_readings_whose_peak_fits() {
        let (less, low) = (Bytes::from_mib(500), Bytes::from_mib(200));
        assert!(!sampled(&[PLENTY; 4]).consent(at(300), less).ok);
        assert!(sampled(&[PLENTY; 5]).consent(at(400), less).ok);
        // Those that are closer together count as one, with the most that was in use.
        let mut watch = sampled(&[PLENTY; 4]);
        watch.sampled(at(399), Memory { available: PLENTY, ..memory() });
        assert!(!watch.consent(at(399), less).ok);
        watch.sampled(at(400), Memory { available: PLENTY, ..memory() });
        assert!(watch.consent(at(400), less).ok);
        watch.sampled(at(450), Memory { available: low, ..memory() });
        watch.sampled(at(460), Memory { available: PLENTY, ..memory() });
        for (millis, agreed) in [(460, false), (2_400, false), (2_401, true)] {
            let mut watch = watch.clone();
            for read in (500..=millis).step_by(100) {
                watch.sampled(at(read), Memory { available: PLENTY, ..memory() });
            }
            assert_eq!(watch.consent(at(millis), less).ok, agreed, "after {millis} ms");
        }
    }

    #[test]
    fn after_a_stall_nothing_is_given_up_for_ten_seconds() {
        let less = Bytes::from_mib(500);
        let mut watch = sampled(&[PLENTY; 5]);
        watch.sampled(at(400), Memory { free: below(), available: PLENTY, ..memory() });
        watch.stalled(at(400));
        for read in (500..=10_400).step_by(100) {
            watch.sampled(at(read), Memory { available: PLENTY, ..memory() });
        }
        assert!(!watch.consent(at(10_399), less).ok);
        assert!(watch.consent(at(10_400), less).ok);
    }

    #[test]
    fn what_does_not_add_up_is_no_reading() {
        let mut watch = Watch::default();
        watch.sampled(BEGAN, Memory { total: Bytes::ZERO, available: Bytes::ZERO, ..memory() });
        watch.sampled(BEGAN, Memory { available: TOTAL.saturating_add(ONE), ..memory() });
        assert_eq!(watch.fresh(BEGAN), None);
        let all = Memory { available: TOTAL, ..memory() };
        watch.sampled(BEGAN, all);
        assert_eq!(watch.fresh(BEGAN), Some(all));
    }

    /// What was available every 100 ms.
    fn sampled(available: &[Bytes]) -> Watch {
        let mut watch = Watch::default();
        for (millis, available) in (0..).step_by(100).zip(available) {
            watch.sampled(at(millis), Memory { available: *available, ..memory() });
        }
        watch
    }

    fn at(millis: u64) -> Moment {
        BEGAN.after(Duration::from_millis(millis))
    }

    fn below() -> Bytes {
        threshold(TOTAL).saturating_sub(ONE)
    }

    fn memory() -> Memory {
        Memory { total: TOTAL, available: PLENTY, free: PLENTY, overhead: None }
    }
}
