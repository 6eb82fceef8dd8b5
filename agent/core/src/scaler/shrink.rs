//! Shrinking: one compute unit at a time, with the guest's consent.
//!
//! Law 3. Memory is taken while a consent holds, and only then: one that is about to end is
//! renewed while the guest is still giving memory back, and when it has ended the rest is
//! called off, which is always possible because it asks for no more than the guest has.

use super::Scaler;
use crate::event::Order;
use std::time::Duration;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::{Capabilities, MilliCpu, Mode, Moment, Resize, Resources, ShrinkCpu};
use windlass_scaling::Sample;

/// A report is on its way no longer than this.
const REPORT_TIME: Duration = Duration::from_secs(2);
/// A consent is renewed when it has this long to go.
const RENEW_BEFORE: Duration = Duration::from_secs(4);

// === impl Scaler ===

impl Scaler {
    /// The next size on the way down, if there is one that may be asked for.
    pub(super) fn next_below(
        &self,
        now: Moment,
        goal: Resources,
        can: &Capabilities,
    ) -> Option<Resources> {
        let has = self.using().filter(|_| self.session.is_active())?;
        let unit = Resources::from(self.unit());
        let mut next = has;
        // With a vCPU on its way in it is not known yet how many the guest is to be content with.
        let parks = self.can_shrink_cpu(can) && !self.holding.is_plugging_open();
        if goal.cpu < has.cpu && parks && self.guest.cpu_refused(now).is_none() {
            let step = unit.cpu.max(can.cpu_step);
            next.cpu = goal.cpu.max(has.cpu.saturating_sub(step)).round_up(can.cpu_step);
        }
        if let Some(requested) = self.holding.unplugging().and(self.holding.requested()) {
            // Under way: what is to be renewed, not a further step.
            next.mem = requested;
        } else if goal.mem < has.mem
            && can.shrink_memory
            && !self.holding.is_moving()
            && self.guest.memory_refused(now).is_none()
            && self.trials.memory_stays(now).is_none()
            && !self.is_unclear(now)
        {
            let step = unit.mem.max(can.memory_step).max(self.info.memory_slot);
            let above = goal.mem.max(has.mem.saturating_sub(step)).saturating_sub(can.min.mem);
            let above = above.round_up(can.memory_step);
            next.mem = can.min.mem.saturating_add(above).min(has.mem);
        }
        (next != has || self.needs_word(now, goal, can)).then_some(next)
    }

    /// When the guest is to be asked for its consent to `next`.
    pub(super) fn consent_due(&self, now: Moment, next: Resources) -> Option<Moment> {
        let has = self.using()?;
        let Some(consent) = self.guest.consent(now) else {
            // A shrink that lost its consent is called off first, and asked for afresh.
            return self.holding.unplugging().is_none().then_some(Moment::default());
        };
        let covers_cpu = next.cpu >= has.cpu || consent.cpu <= next.cpu;
        if !covers_cpu || consent.mem > next.mem {
            return Some(Moment::default());
        }
        // Only a shrink of memory under way needs its consent renewed.
        self.holding.unplugging()?;
        let ends = self.guest.consent_ends()?.millis();
        Some(Moment::from_millis(
            ends.saturating_sub(u64::try_from(RENEW_BEFORE.as_millis()).unwrap_or(u64::MAX)),
        ))
    }

    /// What to ask the hypervisor for, if the guest agreed to less than it has.
    pub(super) fn taking(
        &self,
        now: Moment,
        goal: Resources,
        can: &Capabilities,
    ) -> [Option<Resize>; 2] {
        [self.taking_memory(now, goal, can), self.removal(now, goal, can)]
    }

    /// The guest agreed to less memory than it is asked to have.
    pub(super) fn taking_memory(
        &self,
        now: Moment,
        goal: Resources,
        can: &Capabilities,
    ) -> Option<Resize> {
        let next = self.next_below(now, goal, can)?;
        let consent = self.guest.consent(now)?;
        let less = next.mem < self.holding.requested()? && consent.mem <= next.mem;
        less.then_some(Resize::Memory(next.mem))
    }

    /// vCPUs that the guest does not use, and has agreed to be without.
    fn removal(&self, now: Moment, goal: Resources, can: &Capabilities) -> Option<Resize> {
        let left = self.removable(now, goal, can)?;
        let agreed = self.guest.content_with().is_some_and(|agreed| agreed <= left);
        agreed.then_some(Resize::Cpu(left))
    }

    /// vCPUs are idle, and nobody here has heard the guest agree to be without them: they were
    /// parked for an earlier agent, or by somebody else.
    fn needs_word(&self, now: Moment, goal: Resources, can: &Capabilities) -> bool {
        let agreed = self.guest.content_with();
        self.guest.cpu_refused(now).is_none()
            && self
                .removable(now, goal, can)
                .is_some_and(|left| agreed.is_none_or(|agreed| agreed > left))
    }

    /// How many vCPUs would be left if those that the guest does not use were taken out; `None`
    /// if none are to be.
    fn removable(&self, now: Moment, goal: Resources, can: &Capabilities) -> Option<MilliCpu> {
        if self.is_held(now) || self.order == Order::Release(None) {
            return None;
        }
        // A report that was under way when the guest was last spoken to says nothing of now.
        let spoken = self.guest.told_at().map_or(Moment::default(), |at| at.after(REPORT_TIME));
        let fresh = |sample: &&Sample| now.since(sample.at) < FIGURES_LAST && sample.at >= spoken;
        let report = self.sample.as_ref().filter(fresh)?;
        let reach = report.online.and(report.reach)?;
        let used = self.using().filter(|_| self.session.is_active())?.cpu;
        // The highest go first, and idle ones may be lower. What is left must be permitted: where
        // vCPUs go late, this resize may have to put some in. So none goes while the plugin is away.
        let left = used.max(goal.cpu).max(reach).round_up(can.cpu_step);
        if left > self.permit.known()?.cpu {
            return None;
        }
        let removes = match can.shrink_cpu {
            ShrinkCpu::Removal => left < self.holding.plugged_high()?,
            ShrinkCpu::Parking => false,
        };
        removes.then_some(left)
    }

    /// Calls off a shrink of memory to which nobody agrees any more.
    pub(super) fn calling_off(&self, now: Moment) -> Option<Resize> {
        let present = self.holding.seen()?.memory.present();
        // What was asked for since then counts, whether or not it has been seen.
        let requested = self.holding.requested()?;
        let acts = self.info.mode == Mode::Act;
        let agreed = acts && self.guest.consent(now).is_some_and(|size| size.mem <= requested);
        (requested < present && !agreed).then_some(Resize::Memory(present))
    }

    /// Parking needs a guest that says how many vCPUs it uses.
    fn can_shrink_cpu(&self, can: &Capabilities) -> bool {
        match can.shrink_cpu {
            ShrinkCpu::Removal => true,
            ShrinkCpu::Parking => self.holding.online().is_some(),
        }
    }
}
