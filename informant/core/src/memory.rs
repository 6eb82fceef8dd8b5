//! Whether less memory would do, and whether there is too little.
//!
//! In use is what cannot be had without swapping: `MemTotal` less `MemAvailable`. What the VM
//! has is more than `MemTotal`: the kernel's own image, its page tables and the firmware's
//! holes are in the VM and not managed by the kernel. That overhead is, over all zones that
//! hot-added memory does not go to, pages present less pages managed; where it cannot be read
//! it is taken as [`OVERHEAD`], the reference's estimate (`SysBuffer`).
//!
//! - **Consent.** Less memory is agreed to only if the most that was in use lately fits, with
//!   [`margin`] to spare. A request for no less than the VM has is agreed to, whatever is in use.
//! - **Urgency.** Memory is wanted at once when less than [`threshold`] is available, or when
//!   the kernel reports that tasks wait for memory and next to none is free.
//!
//! The margin is the threshold of the smaller size and [`HEADROOM`] more, so what was agreed
//! to is not urgent a moment later: shrinking and shouting never chase each other.

use crate::event::Memory;
use std::collections::VecDeque;
use std::time::Duration;
use windlass_protocol::{Bytes, Moment};

/// The kernel's share, where it cannot be read.
pub const OVERHEAD: Bytes = Bytes::from_mib(100);

/// Between the size at which a shrink is refused and the size at which memory is urgent. A
/// burst of 16 MiB every 250 ms, the fastest that the project promises to follow, takes half
/// a second to cross it: several samples.
pub const HEADROOM: Bytes = Bytes::from_mib(32);

/// Of so much total memory, this much must be available: 15 % as the reference's successor
/// has it (it asks above 85 %), but enough for a request to be answered in a small guest, and
/// not so much that a large one wastes it.
const THRESHOLD_PERCENT: u64 = 15;
const THRESHOLD_LEAST: Bytes = Bytes::from_mib(64);
const THRESHOLD_MOST: Bytes = Bytes::from_gib(1);

/// Over this time the most that was in use counts for consent. Longer than a garbage
/// collector's pause, shorter than the agent's patience.
const WINDOW: Duration = Duration::from_secs(2);

/// Samples are kept in slots of this length, so their number does not grow with their rate.
const SLOT: Duration = Duration::from_millis(100);

/// With fewer slots than this in the window, nothing is agreed to (the reference's successor
/// averages five samples, 100 ms apart).
const ENOUGH: usize = 5;

/// A sample older than this says nothing.
const FRESH: Duration = Duration::from_secs(1);

/// Memory is asked for at most this often; a request that was lost is made again after it.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// After tasks had to wait for memory, nothing is given up for this long.
const QUIET: Duration = Duration::from_secs(10);

/// What is known of memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// When a slot began, and the most that was in use during it; bounded by the window.
    slots: VecDeque<(Moment, Bytes)>,
    last: Option<(Moment, Memory)>,
    /// When the kernel last reported a stall that more memory would have helped.
    stalled: Option<Moment>,
    /// When memory was last asked for.
    asked: Option<Moment>,
    /// When memory was last given.
    given: Option<Moment>,
}

/// The answer to "can you live with less?", with its reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Consent {
    pub(crate) ok: bool,
    pub(crate) status: String,
}

impl Watch {
    /// Memory was read. What does not add up is no sample.
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

    /// Tasks waited for memory. That counts if next to none is free, cache included: a stall
    /// with much of it free is the doing of a limit within the guest, which more memory does
    /// not lift.
    pub(crate) fn stalled(&mut self, now: Moment) {
        let full = self.fresh(now).is_some_and(|memory| memory.free < threshold(memory.total));
        if full {
            self.stalled = Some(now);
        }
    }

    /// Memory was given: what was short before is examined anew.
    pub(crate) fn given(&mut self, now: Moment) {
        self.given = Some(now);
    }

    /// Memory was asked for.
    pub(crate) fn asked(&mut self, now: Moment) {
        self.asked = Some(now);
    }

    /// From when on to ask for memory, if it is wanted.
    pub(crate) fn want(&self, now: Moment) -> Option<Moment> {
        let after_gift = |at: &Moment| self.given.is_none_or(|given| *at > given);
        let short = self
            .last
            .filter(|(at, _)| now.since(*at) <= FRESH && after_gift(at))
            .is_some_and(|(_, memory)| memory.available < threshold(memory.total));
        let stalled = self.stalled.filter(after_gift).is_some_and(|at| now.since(at) <= ASK_EVERY);
        (short || stalled).then(|| self.asked.map_or(now, |asked| asked.after(ASK_EVERY).max(now)))
    }

    /// Whether the guest can live with `asked`.
    pub(crate) fn consent(&self, now: Moment, asked: Bytes) -> Consent {
        let no = |status| Consent { ok: false, status };
        let Some(memory) = self.fresh(now) else {
            return no("memory was not read within the last second".to_owned());
        };
        let overhead = memory.overhead.unwrap_or(OVERHEAD);
        let has = memory.total.saturating_add(overhead);
        if asked >= has {
            return Consent { ok: true, status: format!("{asked} is no less than the VM has") };
        }
        let slots = self.slots.iter().filter(|(began, _)| now.since(*began) <= WINDOW);
        let (count, used) = slots.fold((0, Bytes::ZERO), |(n, most), (_, u)| (n + 1, most.max(*u)));
        if count < ENOUGH {
            return no(format!("memory was read {count} times lately, {ENOUGH} are needed"));
        }
        if let Some(at) = self.stalled.filter(|at| now.since(*at) < QUIET) {
            let ago = now.since(at).as_secs();
            return no(format!(
                "tasks waited for memory {ago}s ago, and no less than 10s must pass"
            ));
        }
        let usable = asked.saturating_sub(overhead);
        let margin = margin(usable);
        let ok = used.saturating_add(margin) <= usable;
        let verdict = if ok { "fit" } else { "do not fit" };
        Consent {
            ok,
            status: format!(
                "{used} in use and {margin} to spare {verdict} in {usable}, \
                 which is {asked} less {overhead} for the kernel"
            ),
        }
    }

    fn fresh(&self, now: Moment) -> Option<Memory> {
        self.last.filter(|(at, _)| now.since(*at) <= FRESH).map(|(_, memory)| memory)
    }
}

/// Memory is urgent when less than this is available of `total`.
pub fn threshold(total: Bytes) -> Bytes {
    let part = Bytes::from_bytes(total.bytes() / 100 * THRESHOLD_PERCENT);
    part.clamp(THRESHOLD_LEAST, THRESHOLD_MOST)
}

/// What must be to spare before a shrink to `usable` is agreed to.
pub fn margin(usable: Bytes) -> Bytes {
    threshold(usable).saturating_add(HEADROOM)
}
