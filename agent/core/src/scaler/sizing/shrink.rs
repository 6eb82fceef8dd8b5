//! Shrinking: one compute unit at a time, with the guest's consent.
//!
//! Law 3. Memory is taken while a consent holds, and only then: one that is about to end is
//! renewed while the guest is still giving memory back, and when it has ended the rest is
//! called off, which is always possible because it asks for no more than the guest has.

use super::Sizing;
use std::time::Duration;
use windlass_protocol::{MilliCpu, Moment, Resize, Resources, ShrinkCpu};
use windlass_scaling::Sample;

/// A report is on its way no longer than this.
const REPORT_TIME: Duration = Duration::from_secs(2);
/// A consent is renewed when it has this long to go.
const RENEW_BEFORE: Duration = Duration::from_secs(4);

// === impl Sizing ===

impl Sizing<'_> {
    /// The next size on the way down, if there is one that may be asked for.
    pub(super) fn next_below(&self) -> Option<Resources> {
        let Self { vm, now, can, goal, has, unclear, .. } = *self;
        if !vm.informant.session.is_active() {
            return None;
        }
        let unit = Resources::from(vm.unit());
        let mut next = Resources { cpu: self.next_cpu(), ..has };
        if let Some(requested) = vm.size.unplugging().and(vm.size.requested()) {
            // Under way: what is to be renewed, not a further step.
            next.mem = requested;
        } else if goal.mem < has.mem
            && can.shrink_memory
            && !vm.size.is_moving()
            && vm.guest.memory_refused(now).is_none()
            && vm.hypervisor.outcomes().memory_stays(now).is_none()
            && !unclear
        {
            let step = unit.mem.max(can.memory_step).max(vm.orders.info().memory_slot);
            let above = goal.mem.max(has.mem.saturating_sub(step)).saturating_sub(can.min.mem);
            let above = above.round_up(can.memory_step);
            next.mem = can.min.mem.saturating_add(above).min(has.mem);
        }
        (next != has || self.needs_word() || self.parks_idle(next.cpu)).then_some(next)
    }

    /// The next CPU on the way down.
    fn next_cpu(&self) -> MilliCpu {
        let Self { vm, can, goal, has, .. } = *self;
        if goal.cpu >= has.cpu {
            return has.cpu;
        }
        let (step, grain) = (vm.unit().cpu().max(can.cpu_grain()), can.cpu_grain());
        let next = goal.cpu.max(has.cpu.saturating_sub(step)).round_up(grain);
        match self.may_park() {
            true => next,
            // Its part of its vCPUs is no matter of the guest's.
            false if vm.size.limit().is_some() => next.max(self.least_for_vcpus()).min(has.cpu),
            false => has.cpu,
        }
    }

    /// Whether the guest may be asked to park vCPUs. With a vCPU on its way in it is not known yet how many
    /// it is to be content with.
    fn may_park(&self) -> bool {
        let vm = self.vm;
        let refused = vm.guest.cpu_refused(self.now).is_some();
        self.can_shrink_cpu() && !vm.size.is_plugging_open() && !refused
    }

    /// Whether the guest has more vCPUs than it needs for the CPU that it is to have: a limit keeps the CPU from
    /// it, and what waits for it in the guest would hold up the rest.
    fn parks_idle(&self, next: MilliCpu) -> bool {
        let grows = self.permitted().map_or(next, |size| size.cpu.max(next));
        self.vm.size.limit().is_some() && self.may_park() && self.whole(grows) < self.vcpus
    }

    /// When the guest is to be asked for its consent to `next`.
    pub(super) fn consent_due(&self, next: Resources) -> Option<Moment> {
        let Self { vm, now, .. } = *self;
        let Some(consent) = vm.guest.consent(now) else {
            // A shrink that lost its consent is called off first, and asked for afresh.
            return vm.size.unplugging().is_none().then_some(Moment::default());
        };
        let vcpus = self.whole(next.cpu);
        let covers_cpu = vcpus >= self.vcpus || consent.cpu <= vcpus;
        if !covers_cpu || consent.mem > next.mem {
            return Some(Moment::default());
        }
        // Only a shrink of memory under way needs its consent renewed.
        vm.size.unplugging()?;
        Some(vm.guest.consent_ends()?.before(RENEW_BEFORE))
    }

    /// Whether a size is one that the guest is asked for: a part of a vCPU less is no matter of its.
    pub(super) fn needs_consent(&self, next: Resources) -> bool {
        let less = next.mem < self.has.mem || self.whole(next.cpu) < self.vcpus;
        less || self.needs_word()
    }

    /// The guest agreed to less memory than it is asked to have.
    pub(super) fn taking_memory(&self) -> Option<Resize> {
        let vm = self.vm;
        let next = self.next_below()?;
        let consent = vm.guest.consent(self.now)?;
        let less = next.mem < vm.size.requested()? && consent.mem <= next.mem;
        less.then_some(Resize::Memory(next.mem))
    }

    /// vCPUs that the guest does not use, and has agreed to be without.
    pub(super) fn removal(&self) -> Option<Resize> {
        let left = self.removable()?;
        let agreed = self.vm.guest.content_with().is_some_and(|agreed| agreed <= left);
        agreed.then_some(Resize::Cpu(left))
    }

    /// vCPUs are idle, and this agent has not heard the guest agree to be without them: they were
    /// parked for an earlier agent, or by something else.
    fn needs_word(&self) -> bool {
        let guest = &self.vm.guest;
        let agreed = guest.content_with();
        guest.cpu_refused(self.now).is_none()
            && self.removable().is_some_and(|left| agreed.is_none_or(|agreed| agreed > left))
    }

    /// How many vCPUs would be left if those that the guest does not use were taken out; `None`
    /// if none are to be.
    fn removable(&self) -> Option<MilliCpu> {
        let Self { vm, now, can, goal, vcpus, .. } = *self;
        if vm.is_held(now) || vm.orders.releases_as_it_is() {
            return None;
        }
        // A report that was under way when the guest was last spoken to says nothing of now.
        let spoken = vm.guest.told_at().map_or(Moment::default(), |at| at.after(REPORT_TIME));
        let report = vm.signals.fresh(now).filter(|sample: &&Sample| sample.at >= spoken)?;
        let reach = report.online.and(report.reach)?;
        let used = vm.informant.session.is_active().then_some(vcpus)?;
        // The highest go first, and idle ones may be lower. What is left must be permitted: where
        // vCPUs go late, this resize may have to put some in. A permit from before the plugin went away will do.
        let left = used.max(goal.cpu).max(reach).round_up(can.cpu_step);
        if vm.size.limited(left) > vm.permit.known()?.cpu {
            return None;
        }
        let removes = match can.shrink_cpu {
            ShrinkCpu::Removal => left < vm.size.plugged_high()?,
            ShrinkCpu::Parking | ShrinkCpu::ByLimit => false,
        };
        removes.then_some(left)
    }

    /// Parking needs a guest that says how many vCPUs it uses.
    fn can_shrink_cpu(&self) -> bool {
        match self.can.shrink_cpu {
            ShrinkCpu::Removal | ShrinkCpu::ByLimit => true,
            ShrinkCpu::Parking => self.vm.size.online().is_some(),
        }
    }
}
