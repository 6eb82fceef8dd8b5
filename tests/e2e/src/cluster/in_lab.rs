//! NeonVM's VMs as guests of the lab.

use super::{MIB, SLOT};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use windlass_control_plane::Amounts;
use windlass_control_plane::neonvm::Hypervisor;
use windlass_lab::{Extension, Guest, GuestSpec, Lab};

/// The guests of VMs, by the names of their objects.
#[derive(Clone, Default)]
pub(crate) struct Guests(Arc<Mutex<BTreeMap<String, Arc<Guest>>>>);

/// Runs VMs as guests of the lab.
pub(crate) struct InLab {
    pub(crate) lab: Lab,
    pub(crate) guests: Guests,
}

// === impl Guests ===

impl Guests {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Guest>> {
        self.0.lock().expect("no test panics with it").get(name).cloned()
    }

    pub(crate) fn put(&self, name: &str, guest: Option<Guest>) {
        let mut guests = self.0.lock().expect("no test panics with it");
        match guest {
            Some(guest) => drop(guests.insert(name.to_owned(), Arc::new(guest))),
            None => drop(guests.remove(name)),
        }
    }
}

// === impl InLab ===

impl Hypervisor for InLab {
    async fn start(&mut self, vm: &str, guest: &Value) -> IpAddr {
        let most = |axis: &str| guest[axis]["max"].as_u64().expect("the test says it");
        let slot = u32::try_from(SLOT / MIB).expect("it is small");
        let least = u32::try_from(guest["memorySlots"]["min"].as_u64().unwrap_or(1));
        let (least, slots) = (least.expect("it is small"), most("memorySlots"));
        let slots = u32::try_from(slots).expect("it is small");
        let spec = GuestSpec {
            boot_mib: slot * least,
            vcpus: 1,
            max_vcpus: u32::try_from(most("cpus")).expect("it is small"),
            extension: Extension::VirtioMem { mib: slot * (slots - least) },
            ..GuestSpec::named(vm)
        };
        let guest = Guest::boot(&self.lab, spec).await.expect("the guest boots");
        let address = guest.informant().ip();
        self.guests.put(vm, Some(guest));
        address
    }

    /// No vCPU can be taken out of an emulated guest: it has what it may use, as with NeonVM's cgroup.
    async fn step(&mut self, vm: &str, to: Amounts) -> Amounts {
        let guest = self.guests.get(vm).expect("it was started");
        let Ok(has) = guest.outside().await else { return Amounts::default() };
        let plugged = i64::from(has.vcpus) * 1000;
        if plugged < to.cpu {
            let _next_time = guest.plug_vcpu().await;
        }
        let boot = i64::from(guest.spec().boot_mib) * MIB;
        let wanted = u64::try_from(to.memory - boot).unwrap_or_default();
        let _next_time = guest.request_memory(wanted).await;
        Amounts { cpu: plugged.min(to.cpu), memory: i64::try_from(has.memory()).unwrap_or(boot) }
    }

    /// The guest stays where it is, at the same address: what moves is the pod that it belongs to.
    async fn go_on(&mut self, vm: &str) -> IpAddr {
        self.guests.get(vm).expect("it was started").informant().ip()
    }

    async fn end(&mut self, vm: &str) {
        self.guests.put(vm, None);
    }
}
