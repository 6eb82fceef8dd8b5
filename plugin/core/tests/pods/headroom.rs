//! Headroom pods: what they are to request, and what of it is room.

use crate::cluster::*;
use crate::shared::{OWN, headroom_pod, pools, shared_node};
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_plugin_core::Pods;
use windlass_plugin_core::pods::{Change, Write, Written};
use windlass_protocol::NoSuccess;
use windlass_protocol::pod::{Allocation, Pending, Pod};
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

#[test]
fn a_vm_grows_into_what_the_kubelet_has_allocated_to_the_headroom_pod() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(1), "nothing holds room for it yet");
    assert_eq!(created(&pods), cu(3));
    see(&mut pods, 3, None);
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(1), "the kubelet has not admitted the pod");
    see(&mut pods, 3, Some(3));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4));
    assert_eq!(pods.headroom_plan(NOW), []);
    let node = pods.status_of("n").unwrap();
    assert_eq!((node.mode, node.headroom, node.over), ("headroom", cu(3), Resources::ZERO));
}

#[test]
fn a_pod_that_is_placed_finds_what_is_not_requested() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    pods.pod_seen(on("n", other("other", 2)));
    for (units, full) in [(2, None), (3, Some("node n: 3 of cpu asked, 2 of 6 free"))] {
        assert_eq!(why(pods.fits(&vm("b", units), "n")).as_deref(), full);
    }
    assert_eq!(refusal(&mut pods, &vm("b", 3), "n"), "node n: 3 of cpu asked, 2 of 6 free");
    place(&mut pods, &vm("b", 2), "n");
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4), "the new pod took none of the headroom");
}

/// A VM may have its minimum from its first moment.
#[test]
fn what_a_vm_starts_with_beyond_its_request_is_taken_of_the_headroom() {
    let mut pods = shared(None);
    let mut big = vm("big", 1);
    big.vm.as_mut().unwrap().bounds.min = cu(2);
    assert_eq!(refusal(&mut pods, &big, "n"), "node n: 1 of cpu asked, 0 of 0 free");
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    place(&mut pods, &big, "n");
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(3));
}

/// Found by the simulation: a VM that came from another node with more than its pod requests took what other pods may request.
#[test]
fn what_a_vm_comes_with_beyond_its_request_is_taken_of_the_headroom() {
    let mut pods = shared(None);
    pods.node_seen(&node("m", cu(8)), Held::empty);
    let of = |pod: &str| {
        let mut pod = vm(pod, 1);
        pod.vm.as_mut().unwrap().object = VmName::on_host("moves");
        pod
    };
    pods.pod_seen(on("m", of("from")));
    assert_eq!(ask(&pods, "from", 1, 3).permit, cu(3));
    assert_eq!(refusal(&mut pods, &of("to"), "n"), "node n: 2 of cpu asked, 0 of 0 free");
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    place(&mut pods, &of("to"), "n");
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(2));
}

#[test]
fn the_room_falls_before_the_headroom_shrinks_and_rises_after_it_has_grown() {
    let mut pods = shared(Some(1));
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    let change = only(&pods);
    let Write::Resize { size, .. } = &change.write else { panic!("{change:?}") };
    assert_eq!(*size, cu(1));
    assert!(pods.headroom_sent(&change));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(2), "the write may have taken effect");
    pods.headroom_written(&change, Written::Unknown);
    assert_eq!(only(&pods), change, "the same is sent again");
    assert!(pods.headroom_sent(&change));
    pods.headroom_written(&change, Written::Refused);
    assert_eq!(ask(&pods, "a", 2, 4).permit, cu(2), "the first may take effect yet");
    // It did, and the kubelet follows.
    see(&mut pods, 1, Some(3));
    assert_eq!(ask(&pods, "a", 2, 4).permit, cu(2));
    see(&mut pods, 1, Some(1));
    let change = only(&pods);
    let Write::Resize { size, .. } = &change.write else { panic!("{change:?}") };
    assert_eq!(*size, cu(3), "it has one, waits for two, and could use no more");
    assert!(pods.headroom_sent(&change));
    pods.headroom_written(&change, Written::Answered);
    assert_eq!(pods.headroom_plan(NOW), [], "the watch will show it");
    see(&mut pods, 3, Some(1));
    assert_eq!(ask(&pods, "a", 2, 4).permit, cu(2));
    see(&mut pods, 3, Some(3));
    assert_eq!(ask(&pods, "a", 2, 4).permit, cu(4));
}

#[test]
fn a_conflict_is_no_proof_that_the_pod_has_another_revision() {
    let mut pods = shared(Some(1));
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    let change = only(&pods);
    assert!(pods.headroom_sent(&change));
    pods.headroom_written(&change, Written::of(NoSuccess::Conflict));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4), "it has not taken effect");
    assert_eq!(pods.headroom_plan(NOW), [], "nothing is to be given up any more");
}

/// The API server's store was replaced by an earlier copy. The same is sent again, as nothing tells that from an older list.
#[test]
fn a_write_that_the_api_server_has_lost_is_sent_again() {
    let mut pods = shared(Some(1));
    come(&mut pods, "a", 1);
    let held = headroom(3, Some(3));
    pods.pod_seen(held.clone());
    let change = only(&pods);
    assert!(pods.headroom_sent(&change));
    pods.headroom_written(&change, Written::Answered);
    assert_eq!(pods.headroom_plan(NOW), [], "the watch will show it");
    pods.pods_listed(vec![on("n", vm("a", 1)), held]);
    assert_eq!(only(&pods), change);
    assert!(pods.headroom_sent(&change));
    pods.headroom_written(&change, Written::of(NoSuccess::Conflict));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(2), "the first may have taken effect");
    see(&mut pods, 3, Some(3));
    assert_eq!(ask(&pods, "a", 2, 4).permit, cu(4), "it did not");
}

#[test]
fn headroom_covers_the_whole_of_the_slot_that_a_pod_requests() {
    let mut pods = shared(None);
    let mut odd = vm("odd", 1);
    odd.requests.mem = Bytes::from_mib(1044);
    odd.vm.as_mut().unwrap().bounds.max = cu(1);
    pods.pod_seen(on("n", odd));
    come(&mut pods, "a", 1);
    let size = Resources { mem: Bytes::from_mib(3 * 1024 + 108), ..cu(3) };
    assert_eq!(created(&pods), size);
}

#[test]
fn what_vms_have_grown_into_is_not_given_up() {
    let mut pods = shared(Some(1));
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    let change = only(&pods);
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4));
    assert!(!pods.headroom_sent(&change), "it was planned before the VM grew");
    assert_eq!(pods.headroom_plan(NOW), []);
}

/// The object of its node is gone, and the kubelet runs on: it admits a pod of another scheduler once the headroom is gone.
#[test]
fn what_vms_have_grown_into_is_not_given_up_though_others_are_to_have_it() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4));
    pods.pod_seen(on("n", other("past", 7)));
    pods.node_gone("n");
    let change = only(&pods);
    assert!(matches!(change.write, Write::Delete { .. }), "{change:?}");
    assert!(!pods.headroom_sent(&change));
    pods.pod_seen(ended(on("n", vm("a", 1))));
    assert!(pods.headroom_sent(&change));
}

#[test]
fn a_resize_that_is_deferred_or_infeasible_is_given_up() {
    for pending in [Pending::Deferred, Pending::Infeasible, Pending::Other] {
        let mut pods = shared(None);
        come(&mut pods, "a", 1);
        let mut pod = headroom(3, Some(1));
        pod.allocation.as_mut().unwrap().pending = Some(pending);
        pods.pod_seen(pod);
        let Write::Resize { size, gives_up, .. } = only(&pods).write else { panic!() };
        assert_eq!((size, gives_up), (cu(1), true));
        assert_eq!(ask(&pods, "a", 1, 4).permit, cu(2));
    }
}

#[test]
fn one_resize_is_under_way_at_a_time() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    see(&mut pods, 2, Some(1));
    assert_eq!(pods.headroom_plan(NOW), [], "the kubelet is about to answer");
    let mut pod = headroom(2, Some(2));
    pod.allocation.as_mut().unwrap().is_observed = false;
    pods.pod_seen(pod);
    assert_eq!(pods.headroom_plan(NOW), [], "the kubelet speaks of an earlier spec");
}

#[test]
fn a_headroom_pod_that_goes_holds_nothing() {
    let is_going = |pod| Pod { is_terminating: true, ..pod };
    for (what, gone) in [("being deleted", is_going as fn(Pod) -> Pod), ("evicted", ended)] {
        let mut pods = shared(None);
        for name in ["a", "b"] {
            come(&mut pods, name, 1);
        }
        see(&mut pods, 6, Some(6));
        assert_eq!(ask(&pods, "a", 1, 3).permit, cu(3));
        pods.pod_seen(at("gone", gone(headroom(6, Some(6)))));
        assert_eq!(ask(&pods, "b", 1, 2).permit, cu(1), "{what}: nobody grows");
        assert_eq!(ask(&pods, "a", 3, 3).permit, cu(3), "{what}: what was granted stays");
        // What the VM has is no room of others, though no pod requests it.
        assert!(pods.fits(&vm("c", 5), "n").is_err(), "{what}");
    }
}

#[test]
fn a_label_in_another_namespace_makes_no_headroom() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    let mut pod = headroom(3, Some(3));
    pod.name.namespace = "tenant".to_owned();
    pods.pod_seen(pod);
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(1));
    let node = pods.status_of("n").unwrap();
    assert_eq!((node.headroom, node.others), (Resources::ZERO, cu(3)));
    assert_eq!(created(&pods), cu(3));
}

#[test]
fn a_headroom_pod_of_an_earlier_plugin_counts_once_it_was_touched() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    pods.pods_listed(vec![on("n", vm("a", 1)), headroom(3, Some(3))]);
    let inherited = pods.inherit_headroom();
    assert_eq!(inherited, [(pod_name(), "uid of headroom-n".to_owned())]);
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(1), "a resize may have been sent for it");
    assert_eq!(pods.headroom_plan(NOW), []);
    pods.pod_seen(at("touched", headroom(3, Some(3))));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4));
}

#[test]
fn a_headroom_pod_that_cannot_be_touched_counts_once_earlier_writes_are_too_old() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    let [(name, uid)] = pods.inherit_headroom().try_into().unwrap();
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(1));
    pods.inherited_is_too_old(&name, "another");
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(1));
    pods.inherited_is_too_old(&name, &uid);
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4));
}

#[test]
fn headroom_is_for_the_vms_of_the_node() {
    let mut pods = shared(None);
    assert_eq!(pods.headroom_plan(NOW), []);
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    pods.pod_gone(&VmName::on_host("a"), "uid of a");
    let change = only(&pods);
    assert!(matches!(change.write, Write::Delete { .. }), "{change:?}");
    assert!(pods.headroom_sent(&change));
    assert_eq!(room(&pods, "n"), (0, 0));
}

#[test]
fn headroom_is_bounded_by_its_share_and_by_what_is_free() {
    let mut pods = shared(None);
    pods.pod_seen(on("n", other("other", 5)));
    come(&mut pods, "a", 1);
    assert_eq!(created(&pods), cu(2));
    let mut pools = pools(None);
    let windlass_plugin_core::pods::Mode::Headroom(terms) = &mut pools.pools[0].mode else {
        panic!()
    };
    terms.share = 125;
    let mut pods = Pods::of(pools);
    pods.node_seen(&shared_node(8), Held::empty);
    come(&mut pods, "a", 1);
    assert_eq!(created(&pods), cu(1));
}

/// Half of what is kept ready, more or less, is no reason to resize.
#[test]
fn headroom_follows_growth_with_slack() {
    let mut pods = shared(Some(1));
    for name in ["a", "b"] {
        come(&mut pods, name, 1);
    }
    let half = |units: u64, more: u64| {
        Resources::new(MilliCpu::from_milli(units * 1000 + more), Bytes::from_gib(units))
    };
    for (has, size) in [(1_000, None), (1_400, None), (700, None), (1_500, Some(1)), (500, Some(1))]
    {
        let (units, more) = (has / 1000, has % 1000);
        let mut pod = headroom(1, Some(1));
        let spec = Resources { mem: Bytes::from_gib(1), ..half(units, more) };
        let it = pod.allocation.as_mut().unwrap();
        (it.spec, it.allocated) = (spec, Some(spec));
        pod.requests = spec;
        pods.pod_seen(at(&format!("has {has}"), pod));
        let plan = pods.headroom_plan(NOW);
        let planned = plan.first().map(|change| match &change.write {
            Write::Resize { size, .. } => size.cpu.milli() / 1000,
            Write::Create { .. } | Write::Delete { .. } => panic!("{change:?}"),
        });
        assert_eq!(planned, size, "{has}");
    }
}

#[test]
fn a_node_that_leaves_its_pool_keeps_its_books_and_loses_its_headroom_pod() {
    let mut pods = shared(None);
    come(&mut pods, "a", 1);
    see(&mut pods, 3, Some(3));
    assert_eq!(ask(&pods, "a", 1, 3).permit, cu(3));
    let mut dedicated = shared_node(8);
    dedicated.labels.clear();
    dedicated.revision = "2".to_owned();
    pods.node_seen(&dedicated, Held::empty);
    assert_eq!((booked(&pods, "n", "a"), room(&pods, "n")), (Some(cu(3)), (5, 2)));
    let change = only(&pods);
    assert!(matches!(change.write, Write::Delete { .. }), "{change:?}");
    assert!(pods.headroom_sent(&change), "the room of the node is its own again");
    pods.pod_gone(&pod_name(), "uid of headroom-n");
    assert_eq!(room(&pods, "n"), (8, 5));
    pods.node_seen(
        &windlass_protocol::node::Node { revision: "3".to_owned(), ..shared_node(8) },
        Held::empty,
    );
    assert_eq!(room(&pods, "n"), (1, 0), "nobody grows before a headroom pod covers it");
    assert_eq!(created(&pods), cu(3));
}

#[test]
fn a_vm_pod_that_asks_for_more_has_it_once_its_kubelet_says_so() {
    let mut pods = shared(None);
    let grown = |spec, allocated| {
        let mut pod = on("n", vm("a", spec));
        pod.allocation = Some(Box::new(allocation(spec, Some(allocated))));
        at(&format!("a{spec}{allocated}"), pod)
    };
    pods.pod_seen(grown(1, 1));
    come(&mut pods, "b", 1);
    see(&mut pods, 1, Some(1));
    assert_eq!(ask(&pods, "a", 1, 2).permit, cu(2));
    pods.pod_seen(grown(2, 1));
    assert_eq!(ask(&pods, "b", 1, 2).permit, cu(1), "no kubelet has allocated it");
    pods.pod_seen(grown(2, 2));
    assert_eq!(ask(&pods, "b", 1, 2).permit, cu(2));
}

/// A cluster of one shared node of eight units.
fn shared(spare: Option<u64>) -> Pods<Held> {
    let mut pods = Pods::of(pools(spare));
    pods.node_seen(&shared_node(8), Held::empty);
    pods
}

/// A VM pod is on the node, and its agent has what it requests.
fn come(pods: &mut Pods<Held>, name: &str, units: u64) {
    pods.pod_seen(on("n", vm(name, units)));
    assert_eq!(ask(pods, name, units, units).permit, cu(units));
}

fn see(pods: &mut Pods<Held>, spec: u64, allocated: Option<u64>) {
    pods.pod_seen(headroom(spec, allocated));
}

/// The headroom pod with this spec, as far as its kubelet has allocated it.
fn headroom(spec: u64, allocated: Option<u64>) -> Pod {
    let effective = spec.max(allocated.unwrap_or(0));
    let mut pod = headroom_pod(&pod_name(), cu(effective));
    pod.allocation = Some(Box::new(allocation(spec, allocated)));
    // Each is a later word.
    static REVISION: AtomicUsize = AtomicUsize::new(1);
    at(&format!("h{}", REVISION.fetch_add(1, Ordering::Relaxed)), pod)
}

fn allocation(spec: u64, allocated: Option<u64>) -> Allocation {
    Allocation {
        spec: cu(spec),
        allocated: allocated.map(cu),
        generation: 1,
        is_observed: true,
        pending: None,
    }
}

fn pod_name() -> VmName {
    VmName { namespace: OWN.to_owned(), name: "headroom-n".to_owned() }
}

fn only(pods: &Pods<Held>) -> Change {
    let plan = pods.headroom_plan(NOW);
    assert_eq!(plan.len(), 1, "{plan:?}");
    plan[0].clone()
}

fn created(pods: &Pods<Held>) -> Resources {
    let Write::Create { size } = only(pods).write else { panic!() };
    size
}
