//! One VM at one moment, as everybody sees it.

use crate::vm::UNIT_MIB;
use windlass_lab::{Inside, Outside};
use windlass_protocol::status::{Booked, HostStatus, SessionState, VmStatus};
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName, Waiting};

/// What is seen of one VM. What does not answer is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// What the host says of it.
    pub vm: Option<VmStatus>,
    /// What the books have for it.
    pub booked: Option<Booked>,
    /// What QEMU says that it has.
    pub outside: Option<Outside>,
    /// What the guest's kernel says that it has.
    pub inside: Option<Inside>,
}

// === impl View ===

impl View {
    pub(crate) fn of(
        name: &str,
        state: Option<&HostStatus>,
        outside: Option<Outside>,
        inside: Option<Inside>,
    ) -> Self {
        let name = VmName::on_host(name);
        let vm = state.and_then(|state| state.vms.iter().find(|vm| vm.name == name));
        let booked = state.and_then(|state| state.node.vms.iter().find(|vm| vm.name == name));
        Self { vm: vm.cloned(), booked: booked.cloned(), outside, inside }
    }

    /// Whether guest, hypervisor and books agree that it has this many compute units and no
    /// more: vCPUs online, memory plugged, both booked.
    pub fn has(&self, units: u32) -> bool {
        self.uses(units) && self.booked_units(units)
    }

    /// Whether guest and hypervisor agree that it has this many compute units, whatever the
    /// books say.
    pub fn uses(&self, units: u32) -> bool {
        let memory = u64::from(units * UNIT_MIB) << 20;
        let online = self.inside.as_ref().and_then(|inside| inside.cpus_online);
        let settled =
            |outside: &Outside| outside.memory() == memory && outside.upper_memory() == memory;
        online == Some(units) && self.outside.as_ref().is_some_and(settled)
    }

    /// Whether the books have exactly this many compute units for it.
    pub fn booked_units(&self, units: u32) -> bool {
        self.booked.as_ref().is_some_and(|booked| booked.reserved == resources(units))
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
