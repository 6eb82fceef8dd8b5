//! One VM at one moment, as everybody sees it.

use crate::vm::{GIB, UNIT_MIB};
use windlass_lab::{Inside, Outside};
use windlass_protocol::status::{Booked, HostStatus, SessionState, VmStatus};
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName, Waiting};

/// What is seen of one VM. What does not answer is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Whether vCPUs that it has parked leave the books.
    pub parks: bool,
    /// What the host says of it.
    pub vm: Option<VmStatus>,
    /// What the books have for it.
    pub booked: Option<Booked>,
    /// vCPUs that the books have left for it: the room without what others have.
    pub left: Option<u64>,
    /// What QEMU says that it has.
    pub outside: Option<Outside>,
    /// What the guest's kernel says that it has.
    pub inside: Option<Inside>,
}

// === impl View ===

impl View {
    pub(crate) fn of(
        name: &str,
        parks: bool,
        state: Option<&HostStatus>,
        outside: Option<Outside>,
        inside: Option<Inside>,
    ) -> Self {
        let name = VmName::on_host(name);
        let vm = state.and_then(|state| state.vms.iter().find(|vm| vm.name == name));
        let node = state.and_then(|state| state.node.as_ref());
        let booked = node.and_then(|node| node.vms.iter().find(|vm| vm.name == name));
        let left = node.map(|node| {
            let others = node.vms.iter().filter(|vm| vm.name != name);
            let others = others.map(|vm| vm.reserved.cpu.cores_up()).sum();
            node.room.cpu.cores_up().saturating_sub(others)
        });
        Self { parks, vm: vm.cloned(), booked: booked.cloned(), left, outside, inside }
    }

    /// Whether guest, hypervisor and books agree that it has this many compute units and no
    /// more: vCPUs online, memory plugged, both booked.
    ///
    /// Where parked vCPUs do not leave the books, these have every plugged one, whether or not it
    /// is online; and a VM has no more vCPUs than others, which may have parked theirs, have left.
    pub fn has(&self, units: u32) -> bool {
        if self.parks {
            return self.uses(units) && self.booked_units(units);
        }
        let (Some(left), Some(booked)) = (self.left, self.booked.as_ref()) else { return false };
        let vcpus = left.min(units.into());
        let plugged = self.outside.map(|outside| u64::from(outside.vcpus));
        self.has_memory(units)
            && self.online() == Some(vcpus)
            && booked.reserved.mem == resources(units).mem
            && plugged == self.booked_vcpus()
            && plugged >= Some(vcpus)
    }

    /// Whether guest and hypervisor agree that it has this many compute units, whatever the
    /// books say.
    pub fn uses(&self, units: u32) -> bool {
        self.has_memory(units) && self.online() == Some(units.into())
    }

    /// Whether guest and hypervisor agree that it has this many vCPUs and GiB of memory.
    pub fn is(&self, vcpus: u32, gib: u32) -> bool {
        self.has_memory(gib * GIB) && self.online() == Some(vcpus.into())
    }

    /// Whether it has more vCPUs or memory than that.
    pub fn is_above(&self, vcpus: u32, gib: u32) -> bool {
        self.online() > Some(vcpus.into()) || self.memory_mib() > u64::from(gib * GIB * UNIT_MIB)
    }

    /// Whether the host knows its load and its memory.
    pub fn has_figures(&self) -> bool {
        self.vm.as_ref().is_some_and(|vm| vm.signals.load.is_some() && vm.signals.used.is_some())
    }

    /// Whether it has this many compute units' memory, and is asked for no other.
    fn has_memory(&self, units: u32) -> bool {
        let memory = resources(units).mem.bytes();
        let settled =
            |outside: &Outside| outside.memory() == memory && outside.upper_memory() == memory;
        self.outside.as_ref().is_some_and(settled)
    }

    /// vCPUs that its kernel uses.
    pub fn online(&self) -> Option<u64> {
        self.inside.as_ref().and_then(|inside| inside.cpus_online).map(u64::from)
    }

    /// Whether the books have exactly this many compute units for it.
    pub fn booked_units(&self, units: u32) -> bool {
        self.booked.as_ref().is_some_and(|booked| booked.reserved == resources(units))
    }

    /// Whether books and the host's limit have this much CPU for it, in thousandths, and it has a session.
    pub fn has_cpu(&self, milli: u64) -> bool {
        let cpu = MilliCpu::from_milli(milli);
        let limit = self.vm.as_ref().and_then(|vm| vm.seen?.limit);
        let booked = self.booked.as_ref().map(|booked| booked.reserved.cpu);
        self.has_session() && limit == Some(cpu) && booked == Some(cpu)
    }

    /// vCPUs that QEMU says that it has.
    pub fn plugged(&self) -> Option<u32> {
        self.outside.map(|outside| outside.vcpus)
    }

    /// vCPUs that the books have for it.
    pub fn booked_vcpus(&self) -> Option<u64> {
        self.booked.as_ref().map(|booked| booked.reserved.cpu.cores_up())
    }

    /// Whether the host says that it waits for something of this kind.
    pub fn waits(&self, kind: impl Fn(&Waiting) -> bool) -> bool {
        self.vm.as_ref().is_some_and(|vm| vm.waiting.iter().any(kind))
    }

    /// Whether its informant has accepted this host.
    pub fn has_session(&self) -> bool {
        self.vm.as_ref().is_some_and(|vm| vm.session == SessionState::Active)
    }

    /// Bytes that its load program holds.
    pub fn held(&self) -> u64 {
        self.inside.as_ref().map_or(0, |inside| inside.held)
    }

    /// Memory that QEMU says that it has, in MiB.
    pub fn memory_mib(&self) -> u64 {
        self.outside.map_or(0, |outside| outside.memory() >> 20)
    }
}

/// This many compute units.
pub(crate) fn resources(units: u32) -> Resources {
    let units = u64::from(units);
    Resources {
        cpu: MilliCpu::from_cores(units),
        mem: Bytes::from_mib(units * u64::from(UNIT_MIB)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_parked_vcpus_leave_the_books_guest_and_books_agree_on_them() {
        assert!(view(true, 1, 3, 1).has(1), "two of three are parked");
        assert!(!view(true, 1, 3, 3).has(1), "the books have those that are parked");
        assert!(!view(true, 3, 3, 1).has(1), "none is parked");
    }

    #[test]
    fn where_parked_vcpus_stay_in_the_books_these_have_every_plugged_one() {
        assert!(view(false, 1, 3, 3).has(1));
        assert!(!view(false, 1, 3, 1).has(1), "the books have let go of two");
        assert!(!view(false, 3, 3, 3).has(1), "none is parked");
        assert!(!View { left: None, ..view(false, 1, 3, 3) }.has(1), "the host says nothing");
    }

    #[test]
    fn a_vm_has_no_more_vcpus_than_others_have_left() {
        let big = |left| View {
            left: Some(left),
            outside: Some(Outside { boot: resources(3).mem.bytes(), ..outside(1) }),
            booked: booked(Resources { mem: resources(3).mem, ..resources(1) }),
            ..view(false, 1, 1, 1)
        };
        assert!(big(1).has(3), "others have parked what it lacks");
        assert!(!big(2).has(3), "there is one more to be had");
    }

    /// A VM of one unit's memory, with these vCPUs online, plugged and booked, and room for three.
    fn view(parks: bool, online: u32, plugged: u32, booked_cpus: u32) -> View {
        let reserved = Resources { cpu: resources(booked_cpus).cpu, ..resources(1) };
        View {
            parks,
            vm: None,
            booked: booked(reserved),
            left: Some(3),
            outside: Some(outside(plugged)),
            inside: Some(Inside { cpus_online: Some(online), ..Inside::default() }),
        }
    }

    fn outside(vcpus: u32) -> Outside {
        Outside { vcpus, boot: resources(1).mem.bytes(), virtio_mem: None, dimms: 0 }
    }

    fn booked(reserved: Resources) -> Option<Booked> {
        Some(Booked { name: VmName::on_host("a"), priority: 0, reserved, claim: None })
    }
}
