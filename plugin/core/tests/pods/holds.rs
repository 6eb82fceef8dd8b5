//! Nodes on which no VM grows: they are cordoned, or their kubelets are short of memory.

use crate::cluster::*;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::Pools;
use windlass_plugin_core::{Ask, Axis, Held as Holds, Pods};
use windlass_protocol::{Resources, VmName, node};

#[test]
fn no_vm_of_a_cordoned_node_grows_and_each_keeps_and_gives_back_what_it_has() {
    let mut pods = busy(calm());
    pods.node_seen(&cordoned(), || unreachable!());
    let granted = ask(&pods, "a", 2, 3);
    assert_eq!(granted.permit, cu(2), "there is room for it");
    let short = granted.short.iter().map(|short| (short.axis, short.held, short.free));
    let held = Some(Holds::Cordoned);
    assert_eq!(short.collect::<Vec<_>>(), [(Axis::Cpu, held, 0), (Axis::Memory, held, 0)]);
    assert_eq!(
        granted.short[0].to_string(),
        "2 vCPU of 3 vCPU: the node is cordoned, and no VM on it grows meanwhile"
    );
    assert_eq!(ask(&pods, "a", 2, 2).permit, cu(2), "what it has stays");
    assert_eq!((ask(&pods, "a", 2, 1).permit, ask(&pods, "a", 1, 1).permit), (cu(1), cu(1)));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(1)), "what it gives back is free");
    assert_eq!(ask(&pods, "a", 1, 2).permit, cu(1), "and it does not get that again");
    pods.node_seen(&again("uncordoned", calm()), || unreachable!());
    let granted = ask(&pods, "a", 1, 3);
    assert_eq!((granted.permit, granted.short.len()), (cu(3), 0), "it is uncordoned");
}

#[test]
fn where_a_kubelet_is_short_of_memory_vms_get_cpu_and_no_memory() {
    let mut pods = busy(calm());
    let pressed = node::Node { has_memory_pressure: true, ..again("2", calm()) };
    pods.node_seen(&pressed, || unreachable!());
    let granted = ask(&pods, "a", 2, 3);
    assert_eq!(granted.permit, Resources { mem: cu(2).mem, ..cu(3) });
    let short: Vec<_> = granted.short.iter().map(|short| (short.axis, short.held)).collect();
    assert_eq!(short, [(Axis::Memory, Some(Holds::MemoryPressure))]);
    let words =
        "2GiB of 3GiB: the node is short of memory, says its kubelet, and no VM on it grows";
    assert!(granted.short[0].to_string().starts_with(words), "{}", granted.short[0]);
}

/// Law 9: what was promised before is promised still.
#[test]
fn a_plugin_that_starts_on_a_cordoned_node_takes_nothing_from_its_vms() {
    let mut pods = cluster_of(Pools::default(), vec![cordoned()]);
    pods.pods_listed(vec![on("n", capped(3, vm("a", 1)))]);
    assert_eq!(ask(&pods, "a", 3, 3).permit, cu(3));
    assert_eq!(ask(&pods, "a", 3, 4).permit, cu(3));
    let mut pods = cluster_of(Pools::default(), vec![cordoned()]);
    pods.pods_listed(vec![on("n", capped(3, vm("a", 1)))]);
    let granted = pods.node("n").unwrap();
    let name = VmName::on_host("a");
    let granted = granted.with_books(|books| permit(books, NOW, &name, Ask::from(cu(3))));
    assert_eq!(granted.permit, cu(3), "an agent that names no permit, too");
}

/// Two VMs wait: neither gets what no VM gets, and both get it when the cordon ends.
#[test]
fn vms_that_wait_on_a_cordoned_node_share_what_is_free_once_that_ends() {
    let mut pods = busy(calm());
    pods.node_seen(&cordoned(), || unreachable!());
    assert_eq!((ask(&pods, "a", 2, 4).permit, ask(&pods, "b", 1, 4).permit), (cu(2), cu(1)));
    pods.node_seen(&again("uncordoned", calm()), || unreachable!());
    let (a, b) = (ask(&pods, "a", 2, 4).permit, ask(&pods, "b", 1, 4).permit);
    assert!(a != cu(2) && b != cu(1), "{a} {b}");
}

fn calm() -> node::Node {
    node("n", cu(6))
}

fn cordoned() -> node::Node {
    node::Node { is_unschedulable: true, ..again("cordoned", calm()) }
}

fn again(revision: &str, node: node::Node) -> node::Node {
    node::Node { revision: revision.to_owned(), ..node }
}

/// A node of six units with the VMs `a`, which has two, and `b`, which has one.
fn busy(node: node::Node) -> Pods<Held> {
    let mut pods = cluster_of(Pools::default(), vec![node]);
    pods.pods_listed(vec![on("n", vm("a", 1)), on("n", vm("b", 1))]);
    for (name, has) in [("a", 2), ("b", 1)] {
        // The second request names the permit, so what it counted with before is free.
        assert_eq!(ask(&pods, name, has, has).permit, cu(has));
        assert_eq!(ask(&pods, name, has, has).permit, cu(has));
    }
    pods
}
