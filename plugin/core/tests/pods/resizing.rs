//! VMs' own pods: when they are resized, and what of that a VM may have.

use crate::cluster::*;
use std::time::Duration;
use windlass_plugin_core::allotment::Denied;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Kind, Mode, Pool, Pools, Resize, Written};
use windlass_plugin_core::{Ask, Pods, Proposed};
use windlass_protocol::pod::{Allocation, Fixed, Limits, Pending, Pod, VmContainer};
use windlass_protocol::{Moment, Resources, VmName, node};

/// What is allocated to a VM's pod by its kubelet, and what its spec asks for, in compute units.
#[derive(Clone, Copy)]
pub(crate) struct Has {
    pub(crate) spec: u64,
    pub(crate) allocated: Option<u64>,
    pub(crate) is_observed: bool,
    pub(crate) pending: Option<Pending>,
}

#[test]
fn a_vm_grows_once_its_kubelet_has_allocated_it() {
    let mut pods = resized(6);
    see(&mut pods, "a", settled(1));
    assert!(waits(&pods, NOW, "a", 1, 4));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)), "it is reserved meanwhile");
    let resize = due(&pods, NOW, "a").unwrap();
    assert_eq!((resize.to, resize.kind), (cu(4), Kind::Grows));
    assert!(pods.resize_sent(NOW, &resize));
    assert_eq!(due(&pods, NOW, "a").as_ref(), Some(&resize), "the answer may be lost");
    pods.resize_written(NOW, &resize, Written::Answered);
    assert_eq!(due(&pods, NOW, "a"), None, "the watch will show it");
    see(&mut pods, "a", Has { allocated: Some(1), is_observed: false, ..settled(4) });
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(1), "its kubelet has not allocated it");
    assert!(pods.waits_for_kubelet(&name("a")));
    see(&mut pods, "a", settled(4));
    assert!(!pods.waits_for_kubelet(&name("a")));
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(4));
    assert_eq!(due(&pods, NOW, "a"), None);
    let node = pods.status_of("n").unwrap();
    assert_eq!((node.mode, node.over, node.reserved), ("resize", Resources::ZERO, cu(4)));
}

#[test]
fn what_the_kubelet_refuses_is_taken_back_and_tried_again_later() {
    for (pending, word) in [
        (Pending::Deferred, "deferred"),
        (Pending::Infeasible, "infeasible"),
        (Pending::Other, "pending"),
    ] {
        let mut pods = resized(6);
        see(&mut pods, "a", settled(1));
        let (mut now, mut rests) = (NOW, Vec::new());
        for _ in 0..8 {
            assert!(waits(&pods, now, "a", 1, 4));
            send(&mut pods, now, "a", Written::Answered);
            see(&mut pods, "a", Has { allocated: Some(1), pending: Some(pending), ..settled(4) });
            let resize = send(&mut pods, now, "a", Written::Answered).unwrap();
            assert_eq!(resize.kind, Kind::GivesUp(Denied::ByKubelet(pending)));
            assert_eq!(resize.to, cu(1));
            see(&mut pods, "a", settled(1));
            assert_eq!(booked(&pods, "n", "a"), Some(cu(1)), "its room is free again");
            assert!(!waits(&pods, now, "a", 1, 4), "it is told at once");
            assert_eq!((told(&pods, now, "a", 1, 4), due(&pods, now, "a")), (cu(1), None));
            let denied = &pods.status_of("n").unwrap().not_resized[0];
            let until = denied.until.unwrap();
            assert_eq!((denied.why, denied.pod.name.as_str()), (word, "a"));
            rests.push(until.since(now).as_secs());
            now = until;
        }
        assert!(rests.is_sorted() && rests[0] <= 1, "{rests:?}");
        assert!((45..=60).contains(rests.last().unwrap()), "{rests:?}");
        // The next growth ends that.
        assert!(waits(&pods, now, "a", 1, 4));
        see(&mut pods, "a", settled(4));
        assert_eq!(told(&pods, now, "a", 1, 4), cu(4));
        assert!(pods.status_of("n").unwrap().not_resized.is_empty());
    }
}

#[test]
fn a_pod_shrinks_after_its_vm_gave_room_back_and_the_vm_has_no_more_from_then_on() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 4);
    // The VM has less; its agent says so twice.
    assert_eq!(told(&pods, NOW, "a", 4, 2), cu(2));
    assert_eq!(due(&pods, NOW, "a"), None, "the request may be an older one");
    assert_eq!(told(&pods, NOW, "a", 2, 2), cu(2));
    let resize = due(&pods, NOW, "a").unwrap();
    assert_eq!((resize.to, resize.kind), (cu(2), Kind::Shrinks));
    assert!(pods.resize_sent(NOW, &resize));
    assert!(waits(&pods, NOW, "a", 2, 4), "the write may have taken effect");
    pods.resize_written(NOW, &resize, Written::Unknown);
    assert_eq!(send(&mut pods, NOW, "a", Written::Refused).unwrap().to, cu(2));
    assert_eq!(told(&pods, NOW, "a", 2, 4), cu(2), "the first may take effect yet");
    see(&mut pods, "a", Has { allocated: Some(4), is_observed: false, ..settled(2) });
    assert_eq!(told(&pods, NOW, "a", 2, 4), cu(2));
    see(&mut pods, "a", settled(2));
    let later = NOW.after(Duration::from_secs(1));
    assert!(waits(&pods, later, "a", 2, 4));
    assert_eq!(due(&pods, later, "a").unwrap().to, cu(4));
}

#[test]
fn a_shrink_that_was_planned_before_the_vm_grew_is_not_sent() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 4);
    for last in [4, 2] {
        told(&pods, NOW, "a", last, 2);
    }
    let resize = due(&pods, NOW, "a").unwrap();
    assert_eq!(told(&pods, NOW, "a", 2, 4), cu(4), "that is allocated");
    assert!(!pods.resize_sent(NOW, &resize));
    assert_eq!(told(&pods, NOW, "a", 4, 4), cu(4));
}

#[test]
fn a_pod_keeps_its_vms_minimum_and_small_steps_are_joined() {
    let mut pods = resized(6);
    let mut big = pod("a", settled(3));
    big.vm.as_mut().unwrap().bounds.min = cu(2);
    pods.pod_seen(big);
    for last in [3, 1] {
        told(&pods, NOW, "a", last, 1);
    }
    assert_eq!(due(&pods, NOW, "a").unwrap().to, cu(2), "it may need its minimum at once");
    let mut pods = resized(6);
    see(&mut pods, "a", settled(1));
    let some = |milli: u64, mib: u64| Resources {
        cpu: windlass_protocol::MilliCpu::from_milli(milli),
        mem: windlass_protocol::Bytes::from_mib(mib),
    };
    let mut odd = pod("a", settled(1));
    let more = some(1090, 1024 + 128);
    let container = odd.vm.as_mut().unwrap().container.as_mut().unwrap();
    (container.spec, container.allocated, container.effective) = (more, Some(more), more);
    let allocation = odd.allocation.as_mut().unwrap();
    (allocation.spec, allocation.allocated, odd.requests) = (more, Some(more), more);
    pods.pod_seen(at("odd", odd));
    told(&pods, NOW, "a", 1, 1);
    assert_eq!(due(&pods, NOW, "a").unwrap().to, some(1090, 1024), "90m are not worth a write");
}

#[test]
fn a_pod_is_asked_to_grow_when_its_kubelet_has_carried_the_last_spec_out() {
    let mut pods = resized(6);
    for has in [
        Has { is_observed: false, ..settled(1) },
        Has { allocated: Some(2), ..settled(1) },
        Has { allocated: None, ..settled(1) },
    ] {
        see(&mut pods, "a", has);
        assert!(waits(&pods, NOW, "a", 1, 4));
        assert_eq!(due(&pods, NOW, "a"), None);
    }
    see(&mut pods, "a", settled(1));
    assert_eq!(due(&pods, NOW, "a").unwrap().to, cu(4));
}

#[test]
fn a_proposal_ends_with_its_agents_silence_and_what_it_got_is_given_back() {
    let mut pods = resized(6);
    see(&mut pods, "a", settled(1));
    assert!(waits(&pods, NOW, "a", 1, 4));
    send(&mut pods, NOW, "a", Written::Answered);
    see(&mut pods, "a", settled(4));
    assert_eq!(due(&pods, NOW, "a"), None, "its agent will ask again");
    let later = NOW.after(Duration::from_secs(10));
    assert_eq!(due(&pods, later, "a").unwrap().to, cu(1));
}

/// A request of before the last resize says what the VM had then.
#[test]
fn no_last_permit_is_believed_beyond_what_is_allocated() {
    let mut pods = resized(6);
    see(&mut pods, "a", settled(1));
    assert!(waits(&pods, NOW, "a", 4, 4));
    assert_eq!(told(&pods, NOW, "a", 4, 4), cu(1));
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(1));
}

#[test]
fn after_a_restart_in_the_middle_of_a_resize_the_kubelet_still_decides() {
    let halfway = Has { allocated: Some(1), is_observed: false, ..settled(4) };
    let mut pods = Pods::of(pools());
    pods.pods_listed(vec![pod("a", halfway)]);
    assert_eq!(pods.inherit_resizes(), [(name("a"), "uid of a".to_owned())]);
    pods.nodes_listed(vec![resized_node(6)], |_| Held::empty());
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)), "the scheduler counts it, too");
    assert_eq!(told(&pods, NOW, "a", 1, 1), cu(1));
    assert_eq!(due(&pods, NOW, "a"), None, "an earlier plugin may have sent a resize");
    see(&mut pods, "a", halfway);
    assert!(waits(&pods, NOW, "a", 1, 4));
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(1));
    see(&mut pods, "a", settled(4));
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(4));
}

#[test]
fn an_allocation_that_an_earlier_plugin_may_take_away_covers_nothing() {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![resized_node(6)], |_| Held::empty());
    pods.pods_listed(vec![pod("a", settled(4))]);
    pods.inherit_resizes();
    assert!(waits(&pods, NOW, "a", 1, 4));
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(1));
    pods.pod_seen(at("touched", pod("a", settled(4))));
    assert_eq!(told(&pods, NOW, "a", 1, 4), cu(4));
}

#[test]
fn pods_that_cannot_be_resized_stay_at_what_they_request() {
    let another = |pod: &mut Pod| *pod = of_another(pod.clone());
    let fixed = |pod: &mut Pod| {
        pod.vm.as_mut().unwrap().container.as_mut().unwrap().fixed = Some(Fixed::Restarts);
    };
    for (change, why) in [
        (another as fn(&mut Pod), None),
        (fixed, Some("the resizePolicy of its container is RestartContainer")),
    ] {
        let mut pods = resized(6);
        let mut pod = pod("a", settled(2));
        change(&mut pod);
        pods.pod_seen(pod);
        assert!(!waits(&pods, NOW, "a", 1, 4));
        assert_eq!((told(&pods, NOW, "a", 1, 4), due(&pods, NOW, "a")), (cu(2), None));
        let not_resized = pods.status_of("n").unwrap().not_resized;
        assert_eq!(not_resized.first().map(|it| it.why), why);
    }
}

/// A plugin that starts does not know what the other object gave the VM, up to its maximum.
#[test]
fn a_vm_of_another_object_counts_with_its_maximum_until_its_agent_speaks() {
    let mut pods = resized(6);
    pods.pod_seen(of_another(pod("a", settled(1))));
    see(&mut pods, "b", settled(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)));
    assert!(waits(&pods, NOW, "b", 1, 4));
    assert_eq!(due(&pods, NOW, "b").unwrap().to, cu(2), "the rest may be in use");
    for (said, wanted) in [(Some(3), 4), (None, 3)] {
        let mut pods = pods.clone();
        let pods = &mut pods;
        let last_permit = said.map(cu);
        let ask = Ask { last_permit, names_permits: true, ..Ask::from(cu(wanted)) };
        assert_eq!(told_to(pods, NOW, "a", ask), cu(3), "{said:?}: that is what it has");
        assert_eq!(booked(pods, "n", "a"), Some(cu(3)), "{said:?}");
        assert_eq!(told(pods, NOW, "a", 3, 4), cu(3), "no kubelet has allocated more");
        // What it gives back it does not get again.
        for last in [3, 2] {
            assert_eq!(told(pods, NOW, "a", last, 2), cu(2));
        }
        assert_eq!((told(pods, NOW, "a", 2, 4), booked(pods, "n", "a")), (cu(2), Some(cu(2))));
        assert_eq!((told(pods, NOW, "a", 2, 2), due(pods, NOW, "a")), (cu(2), None));
        assert!(waits(pods, NOW, "b", 1, 4));
        assert_eq!(due(pods, NOW, "b").unwrap().to, cu(4), "that is free");
    }
}

/// An agent of an older version names no permit: what it asks for may be what the VM has, or what it wants.
#[test]
fn a_vm_of_another_object_whose_agent_names_no_permit_counts_with_its_maximum() {
    let mut pods = resized(6);
    pods.pod_seen(of_another(pod("a", settled(1))));
    let books = pods.node("n").unwrap();
    let granted = books.with_books(|books| books.request(NOW, &name("a"), cu(3))).unwrap();
    assert!(granted.is_unrecorded);
    assert!(books.with_books(|books| books.says_too_little(&name("a"), cu(3), &granted)));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)));
    assert_eq!(told_to(&pods, NOW, "a", Ask::from(cu(1))), cu(1));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)));
}

/// These books placed it, so it starts there.
#[test]
fn a_vm_of_another_object_that_was_placed_counts_with_what_it_starts_with() {
    let mut pods = resized(3);
    let mut waiting = of_another(pod("a", Has { allocated: None, ..settled(1) }));
    waiting.node = None;
    waiting.vm.as_mut().unwrap().bounds.min = cu(2);
    assert_eq!(pods.fits(&waiting, "n"), Ok(()));
    assert_eq!(place(&mut pods, &waiting, "n").reserved, cu(2));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(2)));
    pods.pod_seen(at("bound", Pod { node: Some("n".to_owned()), ..waiting }));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(2)));
}

#[test]
fn a_vm_whose_pod_is_not_resized_has_nothing_of_its_sidecars_requests() {
    let of_another = |pod: &mut Pod| *pod = of_another(pod.clone());
    let fixed = |pod: &mut Pod| {
        pod.vm.as_mut().unwrap().container.as_mut().unwrap().fixed = Some(Fixed::Restarts);
    };
    for change in [of_another as fn(&mut Pod), fixed] {
        let mut pods = resized(6);
        let mut pod = pod("a", settled(1));
        pod.requests = cu(3);
        let allocation = pod.allocation.as_mut().unwrap();
        (allocation.spec, allocation.allocated) = (cu(3), Some(cu(3)));
        change(&mut pod);
        pods.pod_seen(pod);
        assert_eq!(told(&pods, NOW, "a", 1, 4), cu(1));
        assert_eq!(room(&pods, "n"), (4, 3));
    }
}

#[test]
fn what_a_pod_gave_up_before_its_agent_asked_is_not_kept_for_its_vm() {
    let mut pods = resized(6);
    see(&mut pods, "a", settled(4));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(4)), "an earlier plugin may have promised it");
    // That plugin had the pod shrink, and promised no more before.
    see(&mut pods, "a", settled(2));
    assert_eq!(booked(&pods, "n", "a"), Some(cu(2)));
    let first = Ask::from(cu(2));
    let vm = name("a");
    let node = pods.node_of(&vm).unwrap();
    let proposed = node.with_books(|books| books.propose(NOW, &vm, first)).unwrap();
    assert_ne!(proposed, Proposed::Waits, "nothing waits for the pod to grow again");
    assert_eq!(due(&pods, NOW, "a"), None);
}

#[test]
fn what_a_pod_requests_beside_its_vm_is_no_room_of_vms() {
    let mut pods = resized(6);
    let mut pod = pod("a", settled(1));
    pod.requests = cu(3);
    let allocation = pod.allocation.as_mut().unwrap();
    (allocation.spec, allocation.allocated) = (cu(3), Some(cu(3)));
    pods.pod_seen(pod);
    assert_eq!(room(&pods, "n"), (4, 3));
    assert!(waits(&pods, NOW, "a", 1, 4));
    assert_eq!(due(&pods, NOW, "a").unwrap().to, cu(4), "of the VM's own container");
}

#[test]
fn growth_and_other_pods_share_what_is_left() {
    let mut pods = resized(6);
    for vm in ["a", "b"] {
        see(&mut pods, vm, settled(1));
    }
    pods.pod_seen(on("n", other("other", 1)));
    assert!(waits(&pods, NOW, "a", 1, 3));
    assert!(waits(&pods, NOW, "b", 1, 4));
    assert_eq!(due(&pods, NOW, "b").unwrap().to, cu(2), "the rest is promised to the first");
    assert_eq!(
        why(pods.fits(&vm("c", 1), "n")).as_deref(),
        Some("node n: 1 of cpu asked, 0 of 5 free")
    );
}

/// What was granted where the books decided is covered by no allocation: it stays, and the pod is to cover it.
#[test]
fn a_node_that_comes_to_this_pool_keeps_its_promises() {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![node("n", cu(6))], |_| Held::empty());
    see(&mut pods, "a", settled(1));
    assert_eq!(ask(&pods, "a", 1, 4).permit, cu(4));
    pods.nodes_listed(vec![resized_node(6)], |_| Held::empty());
    assert_eq!((told(&pods, NOW, "a", 4, 4), booked(&pods, "n", "a")), (cu(4), Some(cu(4))));
    assert_eq!(due(&pods, NOW, "a").unwrap().to, cu(4));
}

#[test]
fn a_minimum_and_a_sidecar_both_take_their_place() {
    for (units, fits) in [(2, false), (3, true)] {
        let mut pods = resized(units);
        let mut waiting = pod("a", Has { allocated: None, is_observed: false, ..settled(1) });
        // The VM's container requests one, a sidecar the other.
        (waiting.node, waiting.requests) = (None, cu(2));
        waiting.vm.as_mut().unwrap().bounds.min = cu(2);
        assert_eq!(pods.fits(&waiting, "n").is_ok(), fits, "{units}");
        assert_eq!(pods.place(&waiting, "n").is_ok(), fits, "{units}");
        assert_eq!(pods.status_of("n").unwrap().over, Resources::ZERO, "{units}");
    }
}

/// A node whose pods are resized, with this many compute units.
pub(crate) fn resized(units: u64) -> Pods<Held> {
    let mut pods = Pods::of(pools());
    pods.nodes_listed(vec![resized_node(units)], |_| Held::empty());
    pods
}

/// One pool of such nodes.
pub(crate) fn pools() -> Pools {
    let labels = [("kind".to_owned(), "resized".to_owned())].into();
    let pool = Pool { name: "resized".to_owned(), labels, mode: Mode::Resize, watermark: None };
    Pools { pools: vec![pool], namespace: "own".to_owned(), ..Pools::default() }
}

pub(crate) fn resized_node(units: u64) -> node::Node {
    let labels = [("kind".to_owned(), "resized".to_owned())].into();
    let revision = format!("{units} resized");
    node::Node { labels, revision, ..node("n", cu(units)) }
}

/// A kubelet has carried out what the spec asks for.
pub(crate) fn settled(units: u64) -> Has {
    Has { spec: units, allocated: Some(units), is_observed: true, pending: None }
}

/// The pod of a VM on that node.
pub(crate) fn pod(name: &str, has: Has) -> Pod {
    let Has { spec, allocated, is_observed, pending } = has;
    let (spec, allocated) = (cu(spec), allocated.map(cu));
    let requests = spec.max(allocated.unwrap_or_default());
    let mut pod = on("n", vm(name, 0));
    pod.requests = requests;
    pod.allocation =
        Some(Box::new(Allocation { spec, allocated, generation: 1, is_observed, pending }));
    pod.vm.as_mut().unwrap().container = Some(Box::new(VmContainer {
        name: "vm".to_owned(),
        spec,
        allocated,
        effective: requests,
        limits: Limits::default(),
        enforced: Limits::default(),
        overhead: Resources::ZERO,
        fixed: None,
    }));
    pod
}

/// The pod of the same VM, which belongs to another object.
pub(crate) fn of_another(mut pod: Pod) -> Pod {
    pod.vm.as_mut().unwrap().object = name(&format!("object of {}", pod.name.name));
    pod
}

/// The watch shows the pod of a VM, at a revision of its own.
fn see(pods: &mut Pods<Held>, name: &str, has: Has) {
    let known = pods.pod_revision(&VmName::on_host(name)).unwrap_or_default();
    let next =
        known.strip_prefix('r').and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) + 1;
    pods.pod_seen(at(&format!("r{next}"), pod(name, has)));
}

/// A VM that has grown to this.
pub(crate) fn grown(pods: &mut Pods<Held>, name: &str, units: u64) {
    see(pods, name, settled(1));
    assert!(waits(pods, NOW, name, 1, units));
    see(pods, name, settled(units));
    assert_eq!(told(pods, NOW, name, 1, units), cu(units));
    assert_eq!(told(pods, NOW, name, units, units), cu(units));
}

fn ask_of(last: u64, wanted: u64) -> Ask {
    Ask { last_permit: Some(cu(last)), ..Ask::from(cu(wanted)) }
}

/// Whether the answer waits for the kubelet.
pub(crate) fn waits(pods: &Pods<Held>, now: Moment, vm: &str, last: u64, wanted: u64) -> bool {
    let vm = name(vm);
    let proposed = pods.node_of(&vm).unwrap();
    let proposed = proposed.with_books(|books| books.propose(now, &vm, ask_of(last, wanted)));
    proposed.unwrap() == Proposed::Waits
}

/// What the agent is told at once.
pub(crate) fn told(pods: &Pods<Held>, now: Moment, vm: &str, last: u64, wanted: u64) -> Resources {
    told_to(pods, now, vm, ask_of(last, wanted))
}

pub(crate) fn told_to(pods: &Pods<Held>, now: Moment, vm: &str, ask: Ask) -> Resources {
    let vm = name(vm);
    let node = pods.node_of(&vm).unwrap();
    node.with_books(|books| books.request(now, &vm, ask)).unwrap().permit
}

pub(crate) fn due(pods: &Pods<Held>, now: Moment, vm: &str) -> Option<Resize> {
    pods.resize_due(now, &name(vm))
}

/// Sends what is due, with this outcome.
pub(crate) fn send(
    pods: &mut Pods<Held>,
    now: Moment,
    vm: &str,
    written: Written,
) -> Option<Resize> {
    let resize = due(pods, now, vm)?;
    assert!(pods.resize_sent(now, &resize));
    pods.resize_written(now, &resize, written);
    Some(resize)
}

fn name(vm: &str) -> VmName {
    VmName::on_host(vm)
}
