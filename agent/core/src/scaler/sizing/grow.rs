//! Growth: the hypervisor is asked for what is permitted, and the guest is told what is there.

use super::Sizing;
use std::time::Duration;
use windlass_protocol::{MilliCpu, Moment, Resize, Resources, Seen};

/// A guest that was told and does not follow is told again after this.
const TELL_AGAIN: Duration = Duration::from_secs(3);

// === impl Sizing ===

impl Sizing<'_> {
    /// The goal, as far as it is permitted, in the driver's steps; `None` before a permit.
    pub(in crate::scaler) fn permitted(&self) -> Option<Resources> {
        let Self { vm, goal, can, .. } = *self;
        let size = goal.min(vm.permit.known()?);
        let above = size.mem.saturating_sub(can.min.mem).round_down(can.memory_step);
        Some(Resources {
            cpu: size.cpu.round_down(can.cpu_grain()),
            mem: can.min.mem.saturating_add(above),
        })
    }

    /// What to ask the hypervisor for, if the VM should and may grow.
    ///
    /// Memory first: a guest short of it cannot wait.
    pub(super) fn growth(&self) -> [Option<Resize>; 2] {
        let vm = self.vm;
        let holds = vm.size.requested().zip(vm.size.plugged_high());
        let Some((size, (requested, plugged))) = self.permitted().zip(holds) else {
            return [None; 2];
        };
        let memory = size.mem > requested && self.host_has_room_for(size);
        // A vCPU of which the VM is permitted a part comes only under a limit.
        let vcpus = self.whole(size.cpu);
        let covered = vm.permit.known().is_some_and(|permit| vm.size.limited(vcpus) <= permit.cpu);
        let cpu = vcpus > plugged && covered;
        [memory.then_some(Resize::Memory(size.mem)), cpu.then_some(Resize::Cpu(vcpus))]
    }

    /// Whether the host itself has the memory that growth to `size` would take.
    pub(in crate::scaler) fn host_has_room_for(&self, size: Resources) -> bool {
        self.vm.hypervisor.host_has_room_for(size.mem, self.has.mem)
    }

    /// What to tell the guest, and when, if it does not yet use what it may have.
    pub(super) fn news(&self) -> Option<(Moment, Resources)> {
        let Self { vm, goal, .. } = *self;
        // What a resize under way makes of it is not known yet: a vCPU may be on its way out; and
        // an `/upscale` ends the consent that a shrink under way rests on.
        if vm.size.is_open() {
            return None;
        }
        let seen = vm.size.seen().filter(|_| vm.informant.session.is_active())?;
        let told = vm.guest.told()?;
        let size = self.to_be_told(seen, told)?;
        let online = vm.size.online();
        let follows = online.map_or(!vm.guest.awaits_word(), |online| online >= size.cpu);
        // vCPUs count as usable while no report says otherwise. An `/upscale` for that alone would take
        // back what the guest has just agreed to be content with.
        let wanted = self.usable_vcpus(seen)?;
        if size.mem > told.mem || wanted > told.cpu && !follows {
            return Some((Moment::default(), size));
        }
        let present = seen.memory.present();
        let stays = present > seen.memory.boot && size.mem == present && goal.mem >= present;
        if stays && vm.guest.may_hold_back() {
            // Of vCPUs this says nothing new.
            return online.map(|online| (Moment::default(), Resources { cpu: online, ..size }));
        }
        // A guest that cannot follow is not told for ever, and not while it gives memory back.
        let worth = self.whole(goal.cpu) >= size.cpu && vm.size.unplugging().is_none();
        let again = vm.guest.told_at().map_or(Moment::default(), |at| at.after(TELL_AGAIN));
        (!follows && worth).then_some((again, size))
    }

    fn to_be_told(&self, seen: Seen, told: Resources) -> Option<Resources> {
        let Self { vm, goal, .. } = *self;
        // Only what is there: law 4. And nothing that is about to be taken.
        let present = seen.memory.present();
        let stays = goal.mem >= present && seen.memory.unplugging().is_zero();
        let mem = if stays { present } else { told.mem.min(seen.memory.lower()) };
        let cpu = self.usable_vcpus(seen)?.max(self.vcpus);
        // Telling is allowing: never more than the books hold.
        (vm.permit.known()?.cpu >= vm.size.limited(cpu)).then_some(Resources { cpu, mem })
    }

    /// The vCPUs that the guest may use with the CPU that it is permitted, and that the host's limit leaves it.
    fn usable_vcpus(&self, seen: Seen) -> Option<MilliCpu> {
        let cpu = self.vm.size.limited(self.permitted()?.cpu);
        Some(self.whole(cpu).min(seen.plugged))
    }
}
