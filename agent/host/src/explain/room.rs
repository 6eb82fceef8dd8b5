//! Which VMs have the room that a VM waits for.
//!
//! A vCPU that was given back by parking stays plugged, and the guest can take it up again by itself.
//! Where neither a limit of the host on this VM nor trust (`cpu_limit`) keeps it from the guest, it stays
//! reserved, so a busy VM may wait for room that an idle one holds. What other VMs keep for a while comes
//! back by itself, and a VM that waits does not shorten that: no wire between agents and books can say so.

use super::words::{clock, list, short};
use crate::api::{Explained, Parked, Returning};
use std::cmp::Reverse;
use windlass_protocol::status::{Booked, NodeStatus, VmStatus};
use windlass_protocol::{Axis, Bytes, CpuLimit, MilliCpu, Resources, VmName, Waiting};

/// The most VMs that are named; the largest first, or those that return something first.
const MOST: usize = 5;

/// Where this process does not keep the books.
const ELSEWHERE: &str =
    "The plugin's books say which VMs have the room; this agent does not keep them.";

/// What other VMs than this one have parked, and what stays reserved for them. vCPUs that a guest is about to
/// use are not parked, and a VM that the host limits returns them.
pub(crate) fn parked_by_others(vm: &VmName, vms: &[VmStatus]) -> Vec<Parked> {
    let of = |other: &VmStatus| {
        let (upper, online, goal) = (other.upper?.cpu, other.online?, other.goal?.cpu);
        let cpu = upper.saturating_sub(online);
        let idle = goal <= online && !cpu.is_zero() && !is_limited(other);
        idle.then(|| Parked { vm: other.name.clone(), cpu })
    };
    vms.iter().filter(|other| other.name != *vm).filter_map(of).collect()
}

/// What other VMs than this one keep for a while.
pub(crate) fn returned_by_others(vm: &VmName, vms: &[VmStatus]) -> Vec<Returning> {
    let of = |other: &VmStatus| {
        other.waiting.iter().find_map(|why| {
            let Waiting::Holding { goal, until: Some(from) } = why else { return None };
            let size = other.upper?.saturating_sub(*goal);
            Some(Returning {
                vm: other.name.clone(),
                size,
                from: *from,
                limited: is_limited(other),
            })
        })
    };
    vms.iter().filter(|other| other.name != *vm).filter_map(of).collect()
}

/// Whether the host limits a VM's CPU: the books have no more of it than the limit.
fn is_limited(vm: &VmStatus) -> bool {
    vm.seen.is_some_and(|seen| seen.limit.is_some())
}

/// Which VMs have how much of the axes on which a VM gets less than it wants, in a sentence each.
pub(super) fn holders(explained: &Explained, wanted: Resources, granted: Resources) -> Vec<String> {
    let Some(node) = &explained.node else { return vec![ELSEWHERE.to_owned()] };
    let mut sentences = Vec::new();
    if wanted.cpu > granted.cpu {
        let vcpus = |cpu: MilliCpu| format!("{cpu} vCPU");
        sentences.push(shared(&explained.vm, node, wanted, Axis::Cpu));
        sentences.extend(parked(&explained.parked, explained.cpu_limit));
        // CPU comes back to others only from a VM that the host limits, or where parking is trusted.
        let trusts = explained.cpu_limit == Some(CpuLimit::Trust);
        let comes = explained.returning.iter().filter(|returning| trusts || returning.limited);
        sentences.extend(returning(comes, |size| size.cpu, vcpus));
    }
    if wanted.mem > granted.mem {
        let bytes = |mem: Bytes| mem.to_string();
        sentences.push(shared(&explained.vm, node, wanted, Axis::Memory));
        sentences.extend(returning(&explained.returning, |size| size.mem, bytes));
    }
    sentences
}

/// What others have parked, why it stays reserved all the same, and what frees it.
fn parked(parked: &[Parked], cpu_limit: Option<CpuLimit>) -> Option<String> {
    let mut others: Vec<&Parked> = parked.iter().collect();
    // Stable: they come in the order of names.
    others.sort_by_key(|parked| Reverse(parked.cpu));
    let named = others
        .iter()
        .take(MOST)
        .map(|parked| format!("{} has parked {} vCPU", short(&parked.vm), parked.cpu));
    let names = list(&named.collect::<Vec<_>>());
    (!others.is_empty()).then(|| match cpu_limit {
        Some(CpuLimit::Cgroup | CpuLimit::None) | None => format!(
            "{names}: they stay reserved until the VM ends, because the host does not limit its CPU; \
             `windlass vm check` of that VM says why. `cpu_limit = \"trust\"` in its VM file or in \
             host.toml frees them for others, and trusts the guest not to use what it has parked."
        ),
        Some(CpuLimit::Trust) => format!("{names}: they stay reserved until the VM ends."),
    })
}

/// When others begin to return what counts here, if any of them does.
fn returning<'a, T: Ord + Default>(
    returning: impl IntoIterator<Item = &'a Returning>,
    of: impl Fn(Resources) -> T,
    show: impl Fn(T) -> String,
) -> Option<String> {
    let mut others: Vec<&Returning> = returning.into_iter().collect();
    // Stable: they come in the order of names.
    others.sort_by_key(|returning| returning.from);
    let counts = others.into_iter().filter(|returning| of(returning.size) > T::default());
    let named = counts.map(|Returning { vm, size, from, .. }| {
        format!("{} returns {} from {} on", short(vm), show(of(*size)), clock(*from))
    });
    let named: Vec<String> = named.take(MOST).collect();
    (!named.is_empty()).then(|| format!("If their load stays as it is, {}.", list(&named)))
}

/// Which VMs share an axis of the node.
fn shared(vm: &VmName, node: &NodeStatus, wanted: Resources, axis: Axis) -> String {
    let (of, show) = (|size| axis.of(size), |amount| axis.show(amount));
    let (room, reserved) = (show(of(node.room)), show(of(node.reserved)));
    let mut others: Vec<&Booked> =
        node.vms.iter().filter(|booked| booked.name != *vm && of(booked.reserved) > 0).collect();
    // Stable: the books are in the order of names.
    others.sort_by_key(|booked| Reverse(of(booked.reserved)));
    let head = if of(wanted) > of(node.room) {
        format!("It wants more than the whole node has, {room}")
    } else if of(node.reserved) > of(node.room) {
        let what = match axis {
            Axis::Cpu => "CPU",
            Axis::Memory => "memory",
        };
        format!(
            "Of the node's {room}, {reserved} are reserved, which is more than there is, so no VM grows \
             beyond its reserved {what}"
        )
    } else {
        format!("Of the node's {room}, {reserved} are reserved")
    };
    // `web (priority 10) has 2 vCPU and wants 3 vCPU`.
    let named = others.iter().take(MOST).map(|booked| {
        let priority = match booked.priority {
            0 => String::new(),
            priority => format!(" (priority {priority})"),
        };
        let has = of(booked.reserved);
        let wants = booked.claim.map(of).filter(|wants| *wants > has);
        let wants = wants.map_or(String::new(), |wants| format!(" and wants {}", show(wants)));
        format!("{}{priority} has {}{wants}", short(&booked.name), show(has))
    });
    let rest = others.len().saturating_sub(MOST);
    let rest = (rest > 0).then(|| format!("{rest} others have less"));
    let list: Vec<String> = named.chain(rest).collect();
    if list.is_empty() { format!("{head}.") } else { format!("{head}: {}.", list.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::status::SessionState;
    use windlass_protocol::{Bounds, MemorySeen, Mode, RunState, Seen, Signals};

    #[test]
    fn an_idle_vm_with_parked_vcpus_is_named_and_one_that_grows_or_is_limited_is_not() {
        let busy = VmName::on_host("busy");
        let limited = VmStatus { seen: Some(limited(3)), ..status("limited", 3, 1, 1) };
        let vms =
            [status("busy", 4, 1, 1), status("idle", 3, 1, 1), status("grows", 3, 1, 3), limited];
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
            limit_counts: None,
        }
    }

    fn limited(vcpus: u64) -> Seen {
        Seen {
            plugged: MilliCpu::from_cores(4),
            limit: Some(MilliCpu::from_cores(vcpus)),
            found_limit: None,
            memory: MemorySeen::default(),
            state: RunState::Running,
        }
    }

    fn size(vcpus: u64) -> Resources {
        Resources { cpu: MilliCpu::from_cores(vcpus), mem: Bytes::from_gib(1) }
    }
}
