//! What brings a VM from the size that it has to its goal.
//!
//! The parts are read, and nothing is changed: [`grow`] and [`shrink`] say what to ask the hypervisor
//! for, and what to say to the guest.

mod grow;
mod shrink;

use super::Scaler;
use super::informant::SizeMessage;
use super::target::Target;
use crate::resize_outcomes::Aim;
use windlass_protocol::{Capabilities, Moment, Resize, Resources};

/// A VM that has a size and a goal.
pub(super) struct Sizing<'a> {
    vm: &'a Scaler,
    now: Moment,
    can: &'a Capabilities,
    pub(super) has: Resources,
    pub(super) goal: Resources,
    /// Whether load calls for more than the VM has, and may be the work of returning memory.
    unclear: bool,
}

// === impl Sizing ===

impl<'a> Sizing<'a> {
    /// `None` before the VM was seen.
    pub(super) fn new(vm: &'a Scaler, now: Moment, target: &Target) -> Option<Self> {
        let (can, has) = (vm.hypervisor.can()?, vm.using()?);
        Some(Self { vm, now, can, has, goal: target.goal?.size, unclear: target.is_unclear() })
    }

    /// What to ask the hypervisor for, the most important first.
    pub(super) fn resizes(&self, calls_off: Option<Resize>) -> [Option<(Aim, Resize)>; 5] {
        // To keep all that is there may be growth too: it is a call-off, and is backed off from as one.
        let growth = self.growth().map(|grow| grow.filter(|_| grow != calls_off));
        let [memory, cpu] = growth.map(|grow| Some((Aim::Grow, grow?)));
        let taking = [self.taking_memory(), self.removal()];
        let [less, fewer] = taking.map(|take| Some((Aim::Shrink, take?)));
        [memory, cpu, less, fewer, calls_off.map(|resize| (Aim::CallOff, resize))]
    }

    /// What to say to the guest about its size, and when.
    pub(super) fn message(&self) -> Option<(Moment, SizeMessage)> {
        // An `/upscale` ends the consent that a shrink sent at this very moment would rest on.
        let takes = self.taking_memory().is_some();
        let up = self.news().filter(|_| !takes).map(|(at, size)| (at, SizeMessage::Up(size)));
        let next = self.next_below();
        let down = next.and_then(|next| Some((self.consent_due(next)?, SizeMessage::Down(next))));
        up.into_iter().chain(down).min_by_key(|(at, _)| *at)
    }
}
