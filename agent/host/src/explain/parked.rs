//! Which other VMs hold vCPUs of the node that their guests do not use.
//!
//! A vCPU that was given back by parking stays plugged, and the guest can take it up again by itself.
//! Where parking is not trusted it stays reserved, so a busy VM may wait for room that an idle one
//! holds.

use super::words::{list, short};
use serde::{Deserialize, Serialize};
use windlass_protocol::status::VmStatus;
use windlass_protocol::{MilliCpu, VmName};

/// The most VMs that are named; those with most first.
const MOST: usize = 5;

/// vCPUs that a VM has parked, and that stay reserved for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Which VM.
    pub vm: VmName,
    /// How much CPU.
    pub cpu: MilliCpu,
}

/// What other VMs than this one have parked. vCPUs that a guest is about to use are not.
pub fn parked_by_others(vm: &VmName, vms: &[VmStatus]) -> Vec<Parked> {
    let of = |other: &VmStatus| {
        let (upper, online, goal) = (other.upper?.cpu, other.online?, other.goal?.cpu);
        let cpu = upper.saturating_sub(online);
        let idle = goal <= online && !cpu.is_zero();
        idle.then(|| Parked { vm: other.name.clone(), cpu })
    };
    vms.iter().filter(|other| other.name != *vm).filter_map(of).collect()
}

/// What others have parked, why it stays reserved all the same, and what frees it.
pub(super) fn parked(parked: &[Parked], trust_guest_parking: Option<bool>) -> Option<String> {
    let mut others: Vec<&Parked> = parked.iter().collect();
    // Stable: they come in the order of names.
    others.sort_by_key(|parked| std::cmp::Reverse(parked.cpu));
    let named = others
        .iter()
        .take(MOST)
        .map(|parked| format!("{} has parked {} vCPU", short(&parked.vm), parked.cpu));
    let names = list(&named.collect::<Vec<_>>());
    (!others.is_empty()).then(|| match trust_guest_parking {
        Some(false) => format!(
            "{names}: they stay reserved until the VM ends, because of `trust_guest_parking = false`. \
             `true` in host.toml frees them for others, and trusts every guest not to use what it \
             has parked."
        ),
        Some(true) | None => format!("{names}: they stay reserved until the VM ends."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::status::SessionState;
    use windlass_protocol::{Bounds, Bytes, Mode, Resources, Signals};

    #[test]
    fn an_idle_vm_with_parked_vcpus_is_named_and_one_that_grows_is_not() {
        let busy = VmName::on_host("busy");
        let vms = [status("busy", 4, 1, 1), status("idle", 3, 1, 1), status("grows", 3, 1, 3)];
        let idle = Parked { vm: VmName::on_host("idle"), cpu: MilliCpu::from_cores(2) };
        assert_eq!(parked_by_others(&busy, &vms), [idle]);
    }

    fn status(name: &str, upper: u64, online: u64, goal: u64) -> VmStatus {
        VmStatus {
            name: VmName::on_host(name),
            mode: Mode::Act,
            priority: 0,
            bounds: Bounds { min: size(1), max: size(4) },
            seen: None,
            online: Some(MilliCpu::from_cores(online)),
            upper: Some(size(upper)),
            signals: Signals::default(),
            goal: Some(size(goal)),
            reason: None,
            permit: None,
            consent: None,
            session: SessionState::Active,
            waiting: Vec::new(),
            silent_since: None,
            unit: None,
            window: None,
            target: None,
        }
    }

    fn size(vcpus: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(vcpus), mem: Bytes::from_gib(1) }
    }
}
