//! VMs whose pods belong to objects of another project: their ceilings are on those objects.

use crate::cluster::{Held, NOW, at, booked, cluster_of, cu, node, on, place, room, vm};
use crate::leaving::migration;
use std::collections::BTreeSet;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{CeilingOn, Pools};
use windlass_plugin_core::rebuild::{NotYet, Rebuild};
use windlass_plugin_core::{Ask, Pods, Proposed};
use windlass_protocol::pod::{Ceiling, Pod};
use windlass_protocol::vm_object::VmObject;
use windlass_protocol::{Bounds, Bytes, Resources, VmName};

#[test]
fn a_vm_counts_with_the_ceiling_of_its_object_and_with_what_it_has() {
    let mut pods = followed(8);
    pods.pod_seen(on("n", pod("a-1")));
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(4)), "its object is not known: its maximum");
    pods.object_seen(Object { ceiling: Some(3), has: 1, ..OBJECT }.seen());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)));
    pods.object_seen(Object { ceiling: Some(2), has: 3, ..OBJECT }.seen());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)), "it has more than was recorded");
    pods.object_gone(&name("a"), "uid of a");
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(4)));
}

#[test]
fn a_ceiling_on_the_pod_of_such_a_vm_is_no_word_of_a_plugin() {
    let mut pods = followed(8);
    let mut forged = pod("a-1");
    forged.vm.as_mut().unwrap().ceiling = Some(Ceiling { epoch: 1, write: 9, size: cu(1) });
    pods.pod_seen(on("n", forged));
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(4)));
    pods.object_seen(Object { ceiling: Some(3), ..OBJECT }.seen());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)));
}

/// What is shown is what its agent goes by. The books are another matter: nothing is reserved by it.
#[test]
fn people_are_shown_the_bounds_that_its_object_says() {
    let own = on("n", vm("own", 1));
    for (object, follows, expected) in [
        (None, true, bounds(1, 4)),
        (Some(None), true, bounds(1, 4)),
        (Some(Some(bounds(2, 7))), true, bounds(2, 7)),
        (Some(Some(bounds(2, 7))), false, bounds(1, 4)),
    ] {
        let pools = Pools { follows_objects: follows, ..Pools::default() };
        let mut pods = cluster_of(pools, vec![node("n", cu(8))]);
        for pod in [on("n", pod("a-1")), own.clone()] {
            pods.pod_seen(pod);
        }
        let reserved = booked(&pods, "n", "a-1");
        if let Some(bounds) = object {
            // The pod that the object names is another: that of a VM that moves.
            pods.object_seen(VmObject { bounds, ..Object { pod: "a-0", ..OBJECT }.seen() });
        }
        let shown = |of: &str| pods.views_of(NOW, NOW, &name(of)).vms[0].bounds;
        assert_eq!((shown("a-1"), shown("a")), (expected, expected), "{object:?} {follows}");
        assert_eq!(shown("own"), bounds(1, 4), "its pod is its object");
        assert_eq!(booked(&pods, "n", "a-1"), reserved);
    }
}

/// Agents of versions up to v3.0 say how many slots a VM has, and not how large one is.
#[test]
fn a_vm_counts_in_the_slots_of_its_object() {
    let slot_of = |pods: &Pods<Held>| {
        pods.node_of(&name("a-1"))
            .unwrap()
            .with_books(|books| books.record(&name("a-1")).map(|record| record.memory_slot))
    };
    let object = VmObject { slot: Some(Bytes::from_gib(1)), ..OBJECT.seen() };
    let usual = Some(Bytes::from_mib(128));
    let mut pods = followed(8);
    pods.pod_seen(on("n", pod("a-1")));
    assert_eq!(slot_of(&pods), usual, "nothing says another");
    pods.object_seen(object.clone());
    assert_eq!(slot_of(&pods), object.slot);
    pods.pod_seen(at("2", on("n", pod("a-1"))));
    assert_eq!(slot_of(&pods), object.slot, "its pod says nothing of it");

    let mut pods = followed(8);
    pods.object_seen(object.clone());
    place(&mut pods, &pod("a-1"), "n");
    assert_eq!(slot_of(&pods), object.slot, "from its binding on");
}

#[test]
fn growth_waits_until_the_ceiling_is_on_the_object() {
    let mut pods = followed(8);
    pods.object_seen(OBJECT.seen());
    let pod = pod("a-1");
    pods.pod_seen(pod.clone());
    place(&mut pods, &pod, "n");
    assert_eq!(pods.first_ceiling(&pod, 1), None, "the binding is of the pod");
    pods.pod_seen(on("n", pod));
    assert_eq!(propose(&pods, None, 1), None, "the first answer waits, too");
    let (to, write) = pods.ceiling_due(&name("a-1"), 1).unwrap();
    assert_eq!(to, CeilingOn::Object(name("a"), "uid of a".to_owned()));
    assert_eq!((write.known, write.next.size), (None, cu(2)));
    written(&pods, write.next);
    assert_eq!(propose(&pods, None, 1), Some(1));
    assert_eq!(propose(&pods, Some(1), 2), Some(2), "within it");
    assert_eq!(propose(&pods, Some(2), 4), None);
    let (_, write) = pods.ceiling_due(&name("a-1"), 1).unwrap();
    written(&pods, write.next);
    assert_eq!(propose(&pods, Some(2), 4), Some(4));
}

#[test]
fn without_its_object_a_vm_is_permitted_no_more_than_it_counts_with() {
    let mut pods = followed(8);
    let pod = pod("a-1");
    pods.object_seen(Object { has: 1, ..OBJECT }.seen());
    pods.pod_seen(pod.clone());
    place(&mut pods, &pod, "n");
    pods.object_gone(&name("a"), "uid of a");
    pods.pod_seen(on("n", pod));
    assert_eq!(propose(&pods, None, 3), None);
    assert_eq!(pods.ceiling_due(&name("a-1"), 1), None);
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(1)));
    let node = pods.node_of(&name("a-1")).unwrap();
    let told = node.with_books(|books| books.request(NOW, &name("a-1"), cu(3))).unwrap();
    assert_eq!(told.permit, cu(1));
}

#[test]
fn what_a_vm_has_by_its_object_counts_whatever_its_agent_says() {
    let mut pods = followed(8);
    pods.object_seen(Object { ceiling: Some(4), has: 3, ..OBJECT }.seen());
    pods.pod_seen(on("n", pod("a-1")));
    assert_eq!(propose(&pods, Some(3), 1), Some(1));
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)), "NeonVM has not taken it away yet");
    let freed = pods.object_seen(Object { ceiling: Some(4), has: 1, ..OBJECT }.seen());
    assert!(!freed.is_empty());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(1)));
}

#[test]
fn of_a_vm_that_moves_the_pod_that_its_object_names_has_the_ceiling() {
    let mut pods = followed(16);
    pods.object_seen(Object { ceiling: Some(2), ..OBJECT }.seen());
    pods.pod_seen(on("n", pod("a-1")));
    pods.pod_seen(on("n", pod("a-2")));
    let of = |pods: &Pods<Held>| ["a-1", "a-2"].map(|pod| booked(pods, "n", pod).unwrap());
    assert_eq!(of(&pods), [cu(2), cu(4)]);
    let due = |pods: &Pods<Held>, pod: &str| {
        propose_of(pods, pod, Some(2), 4);
        pods.ceiling_due(&name(pod), 1).map(|(on, _)| on)
    };
    assert_eq!(due(&pods, "a-2"), None);
    pods.object_seen(Object { ceiling: Some(2), pod: "a-2", ..OBJECT }.seen());
    assert_eq!(["a-1", "a-2"].map(|pod| due(&pods, pod)), [None, None], "both take room");
    pods.pod_gone(&name("a-1"), "uid of a-1");
    assert_eq!(due(&pods, "a-2"), Some(CeilingOn::Object(name("a"), "uid of a".to_owned())));
}

/// Found by the simulation: a VM grew after its next pod was placed for what it had, and before its migration was known.
#[test]
fn a_vm_does_not_grow_while_another_pod_of_it_takes_room() {
    let mut pods = cluster_of(
        Pools { follows_objects: true, ..Pools::default() },
        vec![node("n", cu(8)), node("m", cu(8))],
    );
    pods.object_seen(Object { has: 1, ..OBJECT }.seen());
    pods.pod_seen(on("n", pod("a-1")));
    let target = pod("a-2");
    pods.pod_seen(target.clone());
    assert_eq!(propose(&pods, Some(1), 3), None, "another that takes no room is no matter");
    let (_, write) = pods.ceiling_due(&name("a-1"), 1).unwrap();
    assert_eq!(write.next.size, cu(3), "without headroom, which would come with it");
    written(&pods, write.next);
    assert_eq!(propose(&pods, Some(1), 3), Some(3));
    place(&mut pods, &target, "m");
    assert_eq!(booked(&pods, "m", "a-2"), Some(cu(3)));
    assert_eq!(propose(&pods, Some(3), 4), Some(3));
    assert_eq!(
        propose(&pods, Some(3), 2),
        Some(2),
        "it may shrink, and its agent is not told that it moves"
    );
    let going = Pod { is_terminating: true, ..at("2", on("m", target)) };
    pods.pod_seen(going);
    assert_eq!(propose(&pods, Some(2), 3), Some(3), "the other pod goes");
}

/// Found by the simulation: a node was promised twice the headroom of a ceiling that came with a VM.
#[test]
fn a_vm_that_moves_leaves_the_headroom_of_its_ceiling_behind() {
    let mut pods = starts_on(8, &[("m", 3)]);
    grows_to_three(&pods);
    assert_eq!(to_lower(&pods), [], "it may grow");
    let mut moving = pods.clone();
    moving.migration_seen(migration("a"), NOW);
    assert_eq!(to_lower(&moving), [name("a-1")]);
    // Where migrations are not followed, its next pod shows that it is about to move.
    let target = pod("a-2");
    pods.pod_seen(target.clone());
    assert!(pods.place(&target, "m").is_err(), "its ceiling of 4 counts");
    assert_eq!(to_lower(&pods), [name("a-1")]);
    let (_, write) = pods.ceiling_due(&name("a-1"), 1).unwrap();
    assert_eq!(write.next.size, cu(3));
    written(&pods, write.next);
    let freed = pods.object_seen(Object { ceiling: Some(3), has: 3, ..OBJECT }.seen());
    assert!(!freed.is_empty(), "its other pod fits now");
    place(&mut pods, &target, "m");
    pods.pod_seen(on("m", target));
    pods.object_seen(Object { ceiling: Some(3), has: 3, pod: "a-2" }.seen());
    assert_eq!((booked(&pods, "m", "a-2"), room(&pods, "m")), (Some(cu(3)), (3, 0)));
    assert_eq!(to_lower(&pods), [], "it is as low as it gets");
}

/// A write that is under way may be in force by the time that the object names the pod.
#[test]
fn a_ceiling_that_is_being_recorded_comes_with_a_vm_too() {
    let mut pods = starts_on(8, &[("m", 8)]);
    assert_eq!(propose(&pods, Some(1), 2), None);
    let (_, write) = pods.ceiling_due(&name("a-1"), 1).unwrap();
    assert_eq!(write.next.size, cu(3));
    place(&mut pods, &pod("a-2"), "m");
    assert_eq!(booked(&pods, "m", "a-2"), Some(cu(3)));
}

/// Found by the simulation: what an agent had written into the object was not known yet when the VM's pod was made anew.
#[test]
fn a_pod_that_is_made_anew_is_placed_with_the_ceiling_of_its_vm() {
    let mut pods = followed(8);
    pods.object_seen(Object { ceiling: Some(3), has: 1, ..OBJECT }.seen());
    let pod = pod("a-1");
    pods.pod_seen(pod.clone());
    place(&mut pods, &pod, "n");
    assert_eq!((booked(&pods, "n", "a-1"), room(&pods, "n")), (Some(cu(3)), (8, 5)));
    let mut pods = followed(2);
    pods.object_seen(Object { ceiling: Some(3), has: 1, ..OBJECT }.seen());
    assert!(pods.place(&pod, "n").is_err());
}

/// Found by the simulation: a VM's pod was made anew before the watch showed the ceiling that had been recorded for it.
#[test]
fn a_pod_that_is_made_anew_is_placed_with_a_ceiling_that_the_watch_does_not_show_yet() {
    let next = Pod { uid: "next".to_owned(), ..pod("a-1") };
    let runs = || {
        let mut pods = starts_on(8, &[]);
        pods.object_seen(Object { ceiling: Some(1), has: 1, ..OBJECT }.seen());
        grows_to_three(&pods);
        pods
    };
    let mut gone = runs();
    gone.pod_gone(&next.name, "uid of a-1");
    // A list may have begun before the write; one that begins after it shows what is so.
    let old = || vec![Object { ceiling: Some(1), has: 1, ..OBJECT }.seen()];
    let mut listed = gone.clone();
    listed.objects_listed(old());
    let mut twice = listed.clone();
    twice.objects_listed(old());
    place(&mut twice, &next, "n");
    assert_eq!(booked(&twice, "n", "a-1"), Some(cu(1)));
    for mut pods in [gone, runs(), listed] {
        place(&mut pods, &next, "n");
        assert_eq!(booked(&pods, "n", "a-1"), Some(cu(4)));
        pods.pod_seen(on("n", next.clone()));
        assert_eq!(booked(&pods, "n", "a-1"), Some(cu(4)));
        let mut later = Object { ceiling: Some(2), has: 1, ..OBJECT }.seen();
        later.ceiling.as_mut().unwrap().write = 9;
        pods.object_seen(later);
        assert_eq!(booked(&pods, "n", "a-1"), Some(cu(2)), "the watch shows a later one");
    }
}

#[test]
fn a_vm_is_placed_with_what_its_object_says_that_it_starts_with() {
    let mut pods = followed(4);
    pods.object_seen(Object { has: 3, ..OBJECT }.seen());
    let pod = pod("a-1");
    pods.pod_seen(pod.clone());
    place(&mut pods, &pod, "n");
    assert_eq!(room(&pods, "n"), (4, 1));
    assert!(pods.place(&vm("b", 2), "n").is_err());
}

/// Found by the simulation: a VM that got another pod had what its object asked for before the watch named that pod.
#[test]
fn a_vm_whose_object_does_not_name_its_pod_yet_is_placed_with_what_it_may_have() {
    let mut pods = followed(8);
    pods.object_seen(Object { has: 3, ..OBJECT }.seen());
    let next = pod("a-2");
    pods.pod_seen(next.clone());
    place(&mut pods, &next, "n");
    assert_eq!(room(&pods, "n"), (8, 4), "its maximum");
    let mut pods = followed(3);
    assert!(pods.place(&next, "n").is_err());
    pods.object_seen(Object { has: 3, pod: "a-2", ..OBJECT }.seen());
    assert!(pods.place(&next, "n").is_ok());
}

#[test]
fn a_list_replaces_what_the_watch_said_of_objects() {
    let mut pods = followed(16);
    pods.pod_seen(on("n", pod("a-1")));
    pods.object_seen(Object { ceiling: Some(2), ..OBJECT }.seen());
    pods.objects_listed(Vec::new());
    assert_eq!((booked(&pods, "n", "a-1"), pods.objects()), (Some(cu(4)), 0));
    pods.objects_listed(vec![Object { ceiling: Some(3), ..OBJECT }.seen()]);
    assert_eq!((booked(&pods, "n", "a-1"), pods.objects()), (Some(cu(3)), 1));
    assert_eq!(pods.object_revision(&name("a")), Some("3 0 a-1"));
}

#[test]
fn an_earlier_word_on_an_object_that_comes_late_changes_nothing() {
    let mut pods = followed(16);
    pods.pod_seen(on("n", pod("a-1")));
    let objects = [2, 3].map(|ceiling| Object { ceiling: Some(ceiling), ..OBJECT });
    objects.iter().for_each(|object| drop(pods.object_seen(object.seen())));
    pods.object_seen(objects[0].seen());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)));
    pods.objects_listed(vec![objects[0].seen()]);
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(2)), "the API server went back");
    pods.object_seen(objects[1].seen());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)), "revisions come again then");
}

#[test]
fn a_new_leader_counts_with_what_was_recorded_and_the_first_word_says_the_rest() {
    let mut pods = followed(8);
    pods.pods_listed(vec![on("n", pod("a-1"))]);
    pods.objects_listed(vec![Object { ceiling: Some(3), has: 2, ..OBJECT }.seen()]);
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(3)));
    assert_eq!(propose(&pods, Some(2), 2), Some(2));
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(2)));
}

#[test]
fn objects_that_are_not_followed_change_nothing() {
    let mut pods = cluster_of(Pools::default(), vec![node("n", cu(8))]);
    pods.pod_seen(on("n", pod("a-1")));
    pods.object_seen(Object { ceiling: Some(1), ..OBJECT }.seen());
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(4)));
    assert_eq!(propose(&pods, Some(1), 4), Some(4), "nothing has to be recorded");
}

#[test]
fn nothing_is_answered_before_the_ceilings_were_read_in_this_epoch() {
    let mut rebuild = Rebuild::default();
    rebuild.follow_objects();
    rebuild.nodes_listed(rebuild.begun());
    rebuild.pods_listed(NOW, 1, BTreeSet::new());
    assert_eq!(rebuild.serves(), Err(NotYet::NotRebuilt));
    rebuild.objects_listed(1);
    assert_eq!(rebuild.serves(), Ok(()));
    rebuild.begin();
    rebuild.pods_listed(NOW, 2, BTreeSet::new());
    rebuild.objects_listed(1);
    assert_eq!(rebuild.serves(), Err(NotYet::NotRebuilt), "that list is older than the epoch");
    rebuild.objects_listed(2);
    assert_eq!(rebuild.serves(), Err(NotYet::NotRebuilt), "so is that of the nodes");
    rebuild.nodes_listed(2);
    assert_eq!(rebuild.serves(), Ok(()));
}

/// The object of the VM `a`.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    pub(crate) pod: &'static str,
    pub(crate) ceiling: Option<u64>,
    pub(crate) has: u64,
}

pub(crate) const OBJECT: Object = Object { pod: "a-1", ceiling: None, has: 0 };

impl Object {
    pub(crate) fn seen(self) -> VmObject {
        let Self { pod, ceiling, has } = self;
        let said = ceiling.map_or_else(|| "none".to_owned(), |units| units.to_string());
        let recorded = |units| Ceiling { epoch: 1, write: 2, size: cu(units) };
        VmObject {
            name: name("a"),
            uid: "uid of a".to_owned(),
            revision: format!("{said} {has} {pod}"),
            pod: Some(pod.to_owned()),
            has: if has == 0 { Resources::ZERO } else { cu(has) },
            bounds: None,
            slot: None,
            ceiling: ceiling.map(recorded),
            problems: Vec::new(),
        }
    }
}

/// The VM `a` starts on a node of this size. There are these nodes, too.
fn starts_on(units: u64, others: &[(&str, u64)]) -> Pods<Held> {
    let mut pods = followed(units);
    for (other, units) in others {
        pods.node_seen(&node(other, cu(*units)), Held::empty);
    }
    pods.migrations_listed(Vec::new(), NOW);
    pods.object_seen(Object { has: 1, ..OBJECT }.seen());
    pods.pod_seen(on("n", pod("a-1")));
    pods
}

/// Its agent is permitted three units once a ceiling of four is recorded.
fn grows_to_three(pods: &Pods<Held>) {
    assert_eq!(propose(pods, Some(1), 3), None);
    let (_, write) = pods.ceiling_due(&name("a-1"), 1).unwrap();
    assert_eq!(write.next.size, cu(4));
    written(pods, write.next);
    assert_eq!(propose(pods, Some(1), 3), Some(3));
}

/// The VMs of the node `n` whose ceilings are to be written though no agent asks.
fn to_lower(pods: &Pods<Held>) -> Vec<VmName> {
    pods.node("n").unwrap().with_books(|books| books.ceilings_to_mend(NOW))
}

/// A cluster of one node, in which objects of VMs are followed.
pub(crate) fn followed(units: u64) -> Pods<Held> {
    let pools = Pools { follows_objects: true, ..Pools::default() };
    cluster_of(pools, vec![node("n", cu(units))])
}

/// A pod of the VM `a`, which may have four units.
pub(crate) fn pod(pod: &str) -> Pod {
    let mut pod = at("1", vm(pod, 1));
    pod.vm.as_mut().unwrap().object = name("a");
    pod
}

pub(crate) fn name(of: &str) -> VmName {
    VmName::on_host(of)
}

fn bounds(min: u64, max: u64) -> Bounds {
    Bounds { min: cu(min), max: cu(max) }
}

/// What the agent of the pod `a-1` is told; `None`: the answer waits.
fn propose(pods: &Pods<Held>, last: Option<u64>, wanted: u64) -> Option<u64> {
    propose_of(pods, "a-1", last, wanted)
}

fn propose_of(pods: &Pods<Held>, pod: &str, last: Option<u64>, wanted: u64) -> Option<u64> {
    let ask = Ask { last_permit: last.map(cu), ..Ask::from(cu(wanted)) };
    let node = pods.node_of(&name(pod)).unwrap();
    match node.with_books(|books| books.propose(NOW, &name(pod), ask)).unwrap() {
        Proposed::Granted(granted) => Some(granted.permit.cpu.milli() / 1000),
        Proposed::Waits => None,
    }
}

fn written(pods: &Pods<Held>, ceiling: Ceiling) {
    let node = pods.node_of(&name("a-1")).unwrap();
    node.with_books(|books| books.ceiling_written(&name("a-1"), ceiling));
}
