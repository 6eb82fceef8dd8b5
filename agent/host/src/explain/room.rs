//! Which VMs have the room that a VM waits for.

use super::explained::Explained;
use super::parked::parked;
use super::returning::returning;
use super::words::short;
use windlass_protocol::status::{Booked, NodeStatus};
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

/// The most VMs that are named; the largest first.
const MOST: usize = 5;

/// Where this process does not keep the books.
const ELSEWHERE: &str =
    "The plugin's books say which VMs have the room; this agent does not keep them.";

/// Which VMs have how much of the axes on which a VM gets less than it wants, in a sentence each.
pub(super) fn holders(explained: &Explained, wanted: Resources, granted: Resources) -> Vec<String> {
    let Some(node) = &explained.node else { return vec![ELSEWHERE.to_owned()] };
    let mut sentences = Vec::new();
    if wanted.cpu > granted.cpu {
        let vcpus = |cpu: MilliCpu| format!("{cpu} vCPU");
        sentences.push(shared(&explained.vm, node, wanted, |size| size.cpu, vcpus));
        sentences.extend(parked(&explained.parked, explained.trust_guest_parking));
        // Parked vCPUs come back to others only where parking is trusted.
        if explained.trust_guest_parking == Some(true) {
            let vcpus =
                |size: Resources| (!size.cpu.is_zero()).then(|| format!("{} vCPU", size.cpu));
            sentences.extend(returning(&explained.returning, vcpus));
        }
    }
    if wanted.mem > granted.mem {
        let bytes = |mem: Bytes| mem.to_string();
        sentences.push(shared(&explained.vm, node, wanted, |size| size.mem, bytes));
        let memory = |size: Resources| (!size.mem.is_zero()).then(|| size.mem.to_string());
        sentences.extend(returning(&explained.returning, memory));
    }
    sentences
}

/// Which VMs share an axis of the node.
fn shared<T: Copy + Ord + Default>(
    vm: &VmName,
    node: &NodeStatus,
    wanted: Resources,
    of: impl Fn(Resources) -> T,
    show: impl Fn(T) -> String,
) -> String {
    let (room, reserved) = (show(of(node.room)), show(of(node.reserved)));
    let mut others: Vec<&Booked> = node
        .vms
        .iter()
        .filter(|booked| booked.name != *vm && of(booked.reserved) > T::default())
        .collect();
    // Stable: the books are in the order of names.
    others.sort_by_key(|booked| std::cmp::Reverse(of(booked.reserved)));
    let head = if of(wanted) > of(node.room) {
        format!("It wants more than the whole node has, {room}")
    } else if of(node.reserved) > of(node.room) {
        format!(
            "Of the node's {room}, {reserved} are reserved, which is more than there is: no VM grows"
        )
    } else {
        format!("Of the node's {room}, {reserved} are reserved")
    };
    let named = others.iter().take(MOST).map(|booked| holder(booked, &of, &show));
    let rest = others.len().saturating_sub(MOST);
    let rest = (rest > 0).then(|| format!("{rest} others have less"));
    let list: Vec<String> = named.chain(rest).collect();
    if list.is_empty() { format!("{head}.") } else { format!("{head}: {}.", list.join(", ")) }
}

/// `web (priority 10) has 2 vCPU and wants 3 vCPU`.
fn holder<T: Ord>(
    booked: &Booked,
    of: &impl Fn(Resources) -> T,
    show: &impl Fn(T) -> String,
) -> String {
    let priority = match booked.priority {
        0 => String::new(),
        priority => format!(" (priority {priority})"),
    };
    let has = of(booked.reserved);
    let wants = booked.claim.map(of).filter(|wants| *wants > has);
    let wants = wants.map_or(String::new(), |wants| format!(" and wants {}", show(wants)));
    format!("{}{priority} has {}{wants}", short(&booked.name), show(has))
}
