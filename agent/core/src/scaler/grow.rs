//! Growth: the hypervisor is asked for what is permitted, and the guest is told what is there.

use super::Scaler;
use std::time::Duration;
use windlass_protocol::{Bytes, Capabilities, MilliCpu, Moment, Resize, Resources, Seen};

/// What the host keeps for itself when a VM grows, whatever the books say.
const HOST_RESERVE: Bytes = Bytes::from_mib(128);
/// A guest that was told and does not follow is told again after this.
const TELL_AGAIN: Duration = Duration::from_secs(3);

// === impl Scaler ===

impl Scaler {
    /// The goal, as far as it is permitted, in the driver's steps; `None` before a permit.
    pub(super) fn permitted(&self, goal: Resources, can: &Capabilities) -> Option<Resources> {
        let size = goal.min(self.permit.known()?);
        let above = size.mem.saturating_sub(can.min.mem).round_down(can.memory_step);
        Some(Resources {
            cpu: size.cpu.round_down(can.cpu_step),
            mem: can.min.mem.saturating_add(above),
        })
    }

    /// What to ask the hypervisor for, if the VM should and may grow.
    ///
    /// Memory first: a guest short of it cannot wait.
    pub(super) fn growth(&self, goal: Resources, can: &Capabilities) -> [Option<Resize>; 2] {
        let holds = self.holding.requested().zip(self.holding.plugged_high());
        let Some((size, (requested, plugged))) = self.permitted(goal, can).zip(holds) else {
            return [None; 2];
        };
        let memory = size.mem > requested && self.host_has_room_for(size.mem);
        let cpu = size.cpu > plugged;
        [memory.then_some(Resize::Memory(size.mem)), cpu.then_some(Resize::Cpu(size.cpu))]
    }

    /// Whether the host itself has the memory that growth to `size` would take.
    pub(super) fn host_has_room_for(&self, size: Bytes) -> bool {
        let (Some(available), Some(upper)) = (self.host_available, self.upper()) else {
            return true;
        };
        let needed = size.saturating_sub(upper.mem);
        needed.is_zero() || available >= needed.saturating_add(HOST_RESERVE)
    }

    /// What to tell the guest, and when, if it does not yet use what it may have.
    pub(super) fn news(&self, goal: Resources, can: &Capabilities) -> Option<(Moment, Resources)> {
        // What a resize under way makes of it is not known yet: a vCPU may be on its way out; and
        // an `/upscale` ends the consent that a shrink under way rests on.
        if self.holding.is_open() {
            return None;
        }
        let seen = self.holding.seen().filter(|_| self.session.is_active())?;
        let told = self.guest.told()?;
        let size = self.to_be_told(goal, can, seen, told)?;
        let online = self.holding.online();
        let follows = online.map_or(!self.guest.awaits_word(), |online| online >= size.cpu);
        // vCPUs count as usable while no report says otherwise: that is no news by itself, and
        // takes back what the guest has just agreed to be content with.
        let wanted = self.permitted(goal, can)?.cpu.min(seen.plugged);
        if size.mem > told.mem || wanted > told.cpu && !follows {
            return Some((Moment::default(), size));
        }
        let present = seen.memory.present();
        let stays = present > seen.memory.boot && size.mem == present && goal.mem >= present;
        if stays && self.guest.may_hold_back() {
            // Of vCPUs this says nothing new.
            return online.map(|online| (Moment::default(), Resources { cpu: online, ..size }));
        }
        // One that cannot is not told for ever, and not while it is giving memory back.
        let worth = goal.cpu >= size.cpu && self.holding.unplugging().is_none();
        let again = self.guest.told_at().map_or(Moment::default(), |at| at.after(TELL_AGAIN));
        (!follows && worth).then_some((again, size))
    }

    fn to_be_told(
        &self,
        goal: Resources,
        can: &Capabilities,
        seen: Seen,
        told: Resources,
    ) -> Option<Resources> {
        let permitted = self.permitted(goal, can)?;
        // Only what is there: law 4. And nothing that is about to be taken.
        let present = seen.memory.present();
        let stays = goal.mem >= present && seen.memory.unplugging().is_zero();
        let mem = if stays { present } else { told.mem.min(seen.memory.lower()) };
        let usable = self.holding.usable().unwrap_or(MilliCpu::ZERO);
        let cpu = permitted.cpu.min(seen.plugged).max(usable);
        // Telling is allowing: never more than the books hold.
        (self.permit.known()?.cpu >= cpu).then_some(Resources { cpu, mem })
    }
}
