//! What was said between agent and guest: what the guest was told, agreed to, refused and called for.
//!
//! A consent holds for its session and its amount, [`CONSENT_LASTS`] at most from the moment
//! it was asked for, and ends with an `/upscale`, a call for more, or a reboot.

use crate::backoff::{Backoff, Jitter};
use std::time::Duration;
use windlass_protocol::timing::{CONSENT_LASTS, URGENT_FOR};
use windlass_protocol::{MilliCpu, Moment, Resize, Resources, Seen};
use windlass_scaling::Urgency;

/// The rest after a refusal, which doubles with each in a row.
const FIRST_COOL_DOWN: Duration = Duration::from_secs(5);
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(60);

/// What is between the agent and the guest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Guest {
    metrics_port: Option<u16>,
    /// What the guest was last told it has, or last agreed to.
    told: Option<Resources>,
    told_at: Option<Moment>,
    /// Whether it was told what is there since it may have agreed, to an earlier agent or in an
    /// answer that was lost, to be without a part of it.
    counts_on_all: bool,
    /// vCPUs that were asked of the hypervisor, and that the guest was not told of.
    untold: Option<MilliCpu>,
    asking: Option<Asking>,
    consent: Option<AgreedSize>,
    /// vCPUs that it agreed to be content with, in this session and until it is given more.
    content_with: Option<MilliCpu>,
    refusals: Refusals,
    urgency: Option<(Urgency, Moment)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Asking {
    at: Moment,
    /// vCPUs plugged while the question was under way: the guest may use them.
    cpu_floor: MilliCpu,
    /// The guest called for more meanwhile: whichever came first, it is not content.
    taken_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct AgreedSize {
    size: Resources,
    until: Moment,
}

/// After a refusal the guest is not asked again for a while, for what it refused.
#[derive(Clone, Debug, PartialEq)]
struct Refusals {
    cpu: Backoff,
    memory: Backoff,
}

// === impl Guest ===

impl Guest {
    pub(super) fn metrics_port(&self) -> Option<u16> {
        self.metrics_port
    }

    pub(super) fn told(&self) -> Option<Resources> {
        self.told
    }

    pub(super) fn told_at(&self) -> Option<Moment> {
        self.told_at
    }

    /// Whether it may leave memory unused that is there, because it agreed to be without it.
    pub(super) fn may_hold_back(&self) -> bool {
        !self.counts_on_all
    }

    /// Whether vCPUs were added for which the guest waits for a word.
    pub(super) fn awaits_word(&self) -> bool {
        self.untold.is_some()
    }

    /// What the guest agrees to now.
    pub(super) fn consent(&self, now: Moment) -> Option<Resources> {
        self.consent.filter(|consent| now < consent.until).map(|consent| consent.size)
    }

    /// vCPUs that the guest agreed to be content with, however long ago.
    pub(super) fn content_with(&self) -> Option<MilliCpu> {
        self.content_with
    }

    pub(super) fn consent_ends(&self) -> Option<Moment> {
        self.consent.map(|consent| consent.until)
    }

    /// Until when the guest is not asked for memory.
    pub(super) fn memory_refused(&self, now: Moment) -> Option<Moment> {
        self.refusals.memory.lasts(now)
    }

    /// Until when the guest is not asked for vCPUs.
    pub(super) fn cpu_refused(&self, now: Moment) -> Option<Moment> {
        self.refusals.cpu.lasts(now)
    }

    /// What the guest called for, while that is fresh.
    pub(super) fn urgency(&self, now: Moment) -> Option<Urgency> {
        self.urgency.filter(|(_, until)| now < *until).map(|(urgency, _)| urgency)
    }

    /// Until when what the guest called for is fresh.
    pub(super) fn urgency_ends(&self) -> Option<Moment> {
        self.urgency.map(|(_, until)| until)
    }

    /// When a consent or a refusal ends by itself.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Moment> {
        let Refusals { cpu, memory } = &self.refusals;
        [self.consent_ends(), cpu.ends(), memory.ends()].into_iter().flatten()
    }

    pub(super) fn registered(&mut self, metrics_port: u16) {
        self.metrics_port = Some(metrics_port);
        (self.told, self.told_at, self.counts_on_all) = (None, None, false);
    }

    /// A guest finds by itself what is there when its session begins; it is told of what comes
    /// after.
    pub(super) fn finds(&mut self, seen: Seen) {
        let there = Resources { cpu: MilliCpu::ZERO, mem: seen.memory.lower() };
        self.told.get_or_insert(there);
    }

    /// `plugging` vCPUs may come in while the question is under way.
    pub(super) fn downscale_sent(&mut self, now: Moment, plugging: MilliCpu) {
        self.asking = Some(Asking { at: now, cpu_floor: plugging, taken_back: false });
    }

    /// The question got no answer: the guest may have agreed.
    pub(super) fn downscale_unanswered(&mut self) {
        self.counts_on_all = false;
    }

    /// The guest agreed. Returns the most vCPUs that it may use from now on.
    pub(super) fn agreed(
        &mut self,
        now: Moment,
        target: Resources,
        has: Resources,
        jitter: &mut Jitter,
    ) -> MilliCpu {
        let asking = self.asking.take();
        let asked_at = asking.map_or(now, |asking| asking.at);
        let stands = asking.is_none_or(|asking| !asking.taken_back);
        let consent = AgreedSize { size: target, until: asked_at.after(CONSENT_LASTS) };
        self.consent = stands.then_some(consent);
        if !stands && target.mem < has.mem {
            self.takes_word_back(now, jitter);
        }
        self.content_with = Some(target.cpu);
        self.told = Some(target);
        self.told_at = Some(now);
        if target.cpu < has.cpu {
            self.refusals.cpu.succeeded();
        }
        asking.map_or(target.cpu, |asking| asking.cpu_floor.max(target.cpu))
    }

    pub(super) fn declined(
        &mut self,
        now: Moment,
        target: Resources,
        has: Resources,
        jitter: &mut Jitter,
    ) {
        self.asking = None;
        self.consent = None;
        // Where both were asked for it is memory, which can run out; vCPUs are then asked for alone.
        let refused =
            if target.mem < has.mem { &mut self.refusals.memory } else { &mut self.refusals.cpu };
        refused.failed(now, jitter);
    }

    /// Memory that the guest agreed to be without is gone: to agree is not yet to give.
    pub(super) fn gave_memory(&mut self) {
        self.refusals.memory.succeeded();
    }

    /// It needs what it agreed to be without: it is left alone for a while, as one that refuses.
    /// That it says so again and again is one refusal.
    pub(super) fn takes_word_back(&mut self, now: Moment, jitter: &mut Jitter) {
        if self.refusals.memory.is_over(now) {
            self.refusals.memory.failed(now, jitter);
        }
    }

    pub(super) fn resize_sent(&mut self, resize: Resize) {
        match resize {
            Resize::Cpu(count) => {
                self.untold = Some(count);
                if let Some(asking) = &mut self.asking {
                    asking.cpu_floor = asking.cpu_floor.max(count);
                }
            }
            // A resize to more than the guest agreed to ends the consent.
            Resize::Memory(total) => {
                self.consent = self.consent.filter(|consent| total <= consent.size.mem);
            }
            Resize::Limit(_) => {}
        }
    }

    pub(super) fn upscale_sent(&mut self) {
        self.consent = None;
        self.content_with = None;
    }

    pub(super) fn upscaled(&mut self, now: Moment, size: Resources) {
        (self.told, self.told_at, self.counts_on_all) = (Some(size), Some(now), true);
        self.untold = self.untold.filter(|count| *count > size.cpu);
    }

    pub(super) fn called_for_more(
        &mut self,
        now: Moment,
        base: Option<Resources>,
        cpu: bool,
        mem: bool,
    ) {
        let Some(base) = base.filter(|_| cpu || mem) else { return };
        self.consent = None;
        if cpu {
            self.content_with = None;
        }
        if let Some(asking) = &mut self.asking {
            asking.taken_back = true;
        }
        self.urgency = Some((Urgency { base, cpu, mem }, now.after(URGENT_FOR)));
    }

    pub(super) fn session_ended(&mut self) {
        let mut refusals = std::mem::take(&mut self.refusals);
        refusals.cpu.lift();
        refusals.memory.lift();
        *self = Self { metrics_port: self.metrics_port, refusals, ..Self::default() };
    }
}

// === impl Refusals ===

impl Default for Refusals {
    fn default() -> Self {
        let rest = Backoff::new(FIRST_COOL_DOWN, LONGEST_COOL_DOWN);
        Self { cpu: rest.clone(), memory: rest }
    }
}
