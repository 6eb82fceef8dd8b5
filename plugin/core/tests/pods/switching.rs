//! What VMs had before their pods were resized, and what they have by objects of their own, where pods are resized.

use crate::cluster::*;
use crate::resizing::{
    due, grown, of_another, pod, pools, resized, resized_node, send, settled, told, told_to, waits,
};
use std::time::Duration;
use windlass_plugin_core::cluster::Node as _;
use windlass_plugin_core::pods::{Pools, Written};
use windlass_plugin_core::{Ask, Pods};
use windlass_protocol::pod::{Ceiling, Fixed, Pod};
use windlass_protocol::vm_object::VmObject;
use windlass_protocol::{Resources, VmName};

#[test]
fn what_a_vm_may_have_been_permitted_before_counts_until_its_agent_speaks() {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![node("n", cu(6))], |_| Held::empty());
    pods.pod_seen(at("r1", pod("a", settled(1))));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)), "its maximum");
    pods.nodes_listed(vec![resized_node(6)], |_| Held::empty());
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)));
    pods.pod_seen(at("r2", pod("a", settled(2))));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)), "its kubelet knows nothing of that");
    assert_eq!(told(&pods, NOW, "a", 1, 1), cu(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(2)));
}

#[test]
fn a_ceiling_that_somebody_removed_counts_until_the_agent_speaks() {
    let mut pods = resized(6);
    pods.pod_seen(capped(3, pod("a", settled(1))));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)));
    pods.pod_seen(at("r2", pod("a", settled(1))));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)));
    assert_eq!(told(&pods, NOW, "a", 1, 1), cu(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(1)));
}

#[test]
fn what_a_vm_has_by_its_object_counts_where_pods_are_resized() {
    let mut pods = Pods::of(Pools { follows_objects: true, ..pools() });
    pods.nodes_listed(vec![resized_node(8)], |_| Held::empty());
    pods.object_seen(object(3));
    pods.pod_seen(of_another(pod("a", settled(1))));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)), "its ceiling");
    assert_eq!(told(&pods, NOW, "a", 3, 1), cu(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)), "NeonVM has not taken it away yet");
    pods.object_seen(object(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(1)));
}

/// A plugin that starts after its node came to be resized counts the container alone.
#[test]
fn what_a_pod_requests_beside_its_vm_is_told_to_no_vm_without_a_ceiling() {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![node("n", cu(6))], |_| Held::empty());
    let mut beside = pod("a", settled(1));
    beside.requests = cu(3);
    let allocation = beside.allocation.as_mut().unwrap();
    (allocation.spec, allocation.allocated) = (cu(3), Some(cu(3)));
    pods.pod_seen(beside);
    assert_eq!(told(&pods, NOW, "a", 1, 3), cu(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)), "what its pod requests");
}

/// A kubelet has allocated more to it than the API server that went back knows.
#[test]
fn a_pod_that_lost_its_node_is_placed_there_with_what_it_had_where_pods_are_resized() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 3);
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)));
    let before = Pod { node: None, ..at("before", pod("a", settled(1))) };
    pods.pods_listed(vec![before.clone()]);
    place(&mut pods, &before, "n");
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)));
}

/// It had more than its pod before the node came to be resized, and nothing takes that away from it.
#[test]
fn a_node_that_comes_to_be_resized_is_over_full_with_what_pods_request_beside_their_vms() {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![node("n", cu(4))], |_| Held::empty());
    let mut beside = capped(4, pod("a", settled(1)));
    beside.requests = cu(2);
    let allocation = beside.allocation.as_mut().unwrap();
    (allocation.spec, allocation.allocated) = (cu(2), Some(cu(2)));
    pods.pod_seen(beside);
    assert_eq!(told(&pods, NOW, "a", 4, 4), cu(4));
    assert_eq!(pods.status_of("n").unwrap().over, Resources::ZERO);
    pods.nodes_listed(vec![resized_node(4)], |_| Held::empty());
    let node = pods.status_of("n").unwrap();
    assert_eq!((node.room, node.reserved, node.over), (cu(3), cu(4), cu(1)));
}

#[test]
fn what_a_pod_is_about_to_give_up_is_told_to_no_vm_where_its_node_is_resized_no_more() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 4);
    for last in [4, 2] {
        assert_eq!(told(&pods, NOW, "a", last, 2), cu(2));
    }
    assert_eq!(send(&mut pods, NOW, "a", Written::Unknown).unwrap().to, cu(2));
    pods.nodes_listed(vec![node("n", cu(6))], |_| Held::empty());
    assert_eq!(told(&pods, NOW, "a", 2, 4), cu(2), "the write may take effect yet");
}

/// An agent names its VM by the name of the pod, and a request is late by up to ten seconds.
#[test]
fn a_late_word_on_an_earlier_pod_of_its_name_takes_nothing_from_a_vm() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 2);
    pods.pod_gone(&VmName::on_host("a"), "uid of a");
    let mut next = pod("a", settled(3));
    next.uid = "another uid of a".to_owned();
    pods.pod_seen(next);
    assert_eq!(told(&pods, NOW, "a", 2, 2), cu(2));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)), "it may have what its pod requests");
    assert_eq!(due(&pods, NOW, "a"), None, "and its pod stays so");
    let first = Ask { names_permits: true, ..Ask::from(cu(3)) };
    assert_eq!(told_to(&pods, NOW, "a", first), cu(3));
    // Nothing of before is under way any more.
    let later = NOW.after(Duration::from_secs(15));
    for last in [3, 2] {
        assert_eq!(told(&pods, later, "a", last, 2), cu(2));
    }
    assert_eq!(due(&pods, later, "a").unwrap().to, cu(2), "its own agent is believed");
}

/// Nothing is going to cover what it had before: its agent's first word does.
#[test]
fn a_vm_whose_pod_cannot_be_resized_keeps_what_its_agent_says_that_it_has() {
    let mut pods = resized(6);
    let mut fixed = capped(4, pod("a", settled(1)));
    fixed.vm.as_mut().unwrap().container.as_mut().unwrap().fixed = Some(Fixed::Restarts);
    pods.pod_seen(fixed);
    let ask = Ask { names_permits: true, ..Ask::from(cu(3)) };
    assert_eq!(told_to(&pods, NOW, "a", ask), cu(3));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(3)));
    assert_eq!(told(&pods, NOW, "a", 3, 4), cu(3), "it grows no more");
}

/// A pod that goes is not resized, and keeps no room for that.
#[test]
fn a_later_word_revives_no_proposal_that_ended_with_silence() {
    let mut pods = resized(6);
    pods.pod_seen(pod("a", settled(1)));
    assert!(waits(&pods, NOW, "a", 1, 4));
    let mut going = pod("a", settled(1));
    going.is_terminating = true;
    pods.pod_seen(at("it goes", going));
    let later = NOW.after(Duration::from_secs(10));
    assert_eq!(told(&pods, later, "a", 1, 4), cu(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(1)));
}

/// A later plugin would count it with what its pod requests, and give the rest to others.
#[test]
fn a_ceiling_that_somebody_removed_is_recorded_again_where_no_pod_covers_what_its_vm_has() {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![node("n", cu(6))], |_| Held::empty());
    let mut fixed = pod("a", settled(1));
    fixed.vm.as_mut().unwrap().container.as_mut().unwrap().fixed = Some(Fixed::Restarts);
    pods.pod_seen(capped(3, fixed.clone()));
    assert_eq!(told(&pods, NOW, "a", 3, 3), cu(3));
    pods.nodes_listed(vec![resized_node(6)], |_| Held::empty());
    assert_eq!(to_record(&pods), [], "the pod still says so");
    pods.pod_seen(at("r2", fixed.clone()));
    assert_eq!(to_record(&pods), [VmName::on_host("a")]);
    let (_, write) = pods.ceiling_due(&VmName::on_host("a"), 1).unwrap();
    assert_eq!((write.known, write.next.size), (None, cu(3)));
    assert!(write.next.write > 2, "a text that was there before does not return");
    let node = pods.node_of(&VmName::on_host("a")).unwrap();
    node.with_books(|books| books.ceiling_written(&VmName::on_host("a"), write.next));
    assert_eq!((to_record(&pods), booked(&pods, "n", "a")), (vec![], Some(cu(3))));
    fixed.vm.as_mut().unwrap().ceiling = Some(write.next);
    let mut later = resized(6);
    later.pod_seen(fixed);
    assert_eq!(booked(&later, "n", "a"), Some(cu(3)));
}

/// All that the pod of a VM asks for may be taken away by a resize that an earlier plugin has sent, until its pod is seen anew.
#[test]
fn no_ceiling_is_recorded_for_a_pod_that_an_earlier_plugin_may_yet_resize() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 3);
    assert_eq!(to_record(&pods), []);
    assert_eq!(pods.inherit_resizes().len(), 1);
    assert_eq!(pods.ceiling_due(&VmName::on_host("a"), 1), None);
}

/// A plugin listed the pods before its first list of nodes, and once more when it began to lead.
#[test]
fn a_pod_that_was_not_resized_when_a_plugin_began_to_lead_is_so_once_its_node_is() {
    let mut pods = Pods::of(pools());
    pods.pods_listed(vec![pod("a", settled(1))]);
    assert_eq!(pods.inherit_resizes().len(), 1, "its node may be one whose pods are resized");
    pods.nodes_listed(vec![node("n", cu(6))], |_| Held::empty());
    pods.pods_listed(vec![pod("a", settled(1))]);
    assert_eq!(pods.inherit_resizes(), []);
    pods.nodes_listed(vec![resized_node(6)], |_| Held::empty());
    assert!(waits(&pods, NOW, "a", 1, 4));
    assert_eq!(due(&pods, NOW, "a").unwrap().to, cu(4));
}

#[test]
fn a_vm_of_another_object_is_placed_beside_its_sidecar() {
    for (units, fits) in [(1, false), (2, true)] {
        let mut pods = resized(units);
        let mut waiting: Pod = of_another(pod("a", settled(1)));
        // The VM's container requests one, a sidecar the other.
        (waiting.node, waiting.requests) = (None, cu(2));
        assert_eq!(pods.fits(&waiting, "n").is_ok(), fits, "{units}");
        assert_eq!(pods.place(&waiting, "n").is_ok(), fits, "{units}");
        assert_eq!(pods.status_of("n").unwrap().over, Resources::ZERO, "{units}");
    }
}

/// The VMs of the node whose ceilings are to be recorded though no agent asks.
fn to_record(pods: &Pods<Held>) -> Vec<VmName> {
    let node = pods.node_of(&VmName::on_host("a")).unwrap();
    node.with_books(|books| books.ceilings_to_mend(NOW))
}

/// The object of the VM that the pod `a` runs has this much.
fn object(units: u64) -> VmObject {
    VmObject {
        name: VmName::on_host("object of a"),
        uid: "uid of object of a".to_owned(),
        revision: units.to_string(),
        pod: Some("a".to_owned()),
        has: cu(units),
        bounds: None,
        slot: None,
        ceiling: Some(Ceiling { epoch: 1, write: 2, size: cu(4) }),
        problems: Vec::new(),
    }
}
