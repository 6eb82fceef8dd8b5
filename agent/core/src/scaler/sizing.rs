//! What brings a VM from the size that it has to its goal.
//!
//! The parts are read, and nothing is changed: [`grow`] and [`shrink`] say what to ask the hypervisor
//! for, and what to say to the guest.

mod grow;
mod limit;
mod shrink;

use super::Scaler;
use super::informant::SizeMessage;
use super::target::Target;
use crate::resize_outcomes::Aim;
use windlass_protocol::{Capabilities, MilliCpu, Moment, Resize, Resources};

/// A VM that has a size and a goal.
pub(super) struct Sizing<'a> {
    vm: &'a Scaler,
    now: Moment,
    can: &'a Capabilities,
    pub(super) has: Resources,
    /// vCPUs that the guest uses or may use, whatever CPU it has for them.
    vcpus: MilliCpu,
    pub(super) goal: Resources,
    /// Whether load calls for more than the VM has, and may be the work of returning memory.
    unclear: bool,
}

// === impl Sizing ===

impl<'a> Sizing<'a> {
    /// `None` before the VM was seen.
    pub(super) fn new(vm: &'a Scaler, now: Moment, target: &Target) -> Option<Self> {
        let (can, has) = (vm.hypervisor.can()?, vm.using()?);
        let (vcpus, goal) = (vm.size.vcpus()?, target.goal?.size);
        Some(Self { vm, now, can, has, vcpus, goal, unclear: target.is_unclear() })
    }

    /// What to ask the hypervisor for, the most important first.
    pub(super) fn resizes(&self, calls_off: Option<Resize>) -> Vec<(Aim, Resize)> {
        // To keep all that is there may be growth too: it is a call-off, and is backed off from as one.
        let growth = self.growth().map(|grow| grow.filter(|_| grow != calls_off));
        let raised = [self.raised_limit()].into_iter().chain(growth);
        let lowered =
            [self.taking_memory(), self.removal(), self.first_limit(), self.lowered_limit()];
        let grow = raised.flatten().map(|resize| (Aim::Grow, resize));
        let shrink = lowered.into_iter().flatten().map(|resize| (Aim::Shrink, resize));
        grow.chain(shrink).chain(calls_off.map(|resize| (Aim::CallOff, resize))).collect()
    }

    /// The whole vCPUs that this much CPU is used with.
    fn whole(&self, cpu: MilliCpu) -> MilliCpu {
        cpu.round_up(self.can.cpu_step)
    }

    /// What to say to the guest about its size, and when.
    pub(super) fn message(&self) -> Option<(Moment, SizeMessage)> {
        // An `/upscale` ends the consent that a shrink sent at this very moment would rest on.
        let takes = self.taking_memory().is_some();
        let up = self.news().filter(|_| !takes).map(|(at, size)| (at, SizeMessage::Up(size)));
        let next = self.next_below().filter(|next| self.needs_consent(*next));
        let down = next.and_then(|next| {
            let size = Resources { cpu: self.whole(next.cpu), ..next };
            Some((self.consent_due(next)?, SizeMessage::Down(size)))
        });
        up.into_iter().chain(down).min_by_key(|(at, _)| *at)
    }
}
