//! Placements: what is reserved, what ends one, and what does not.

use crate::cluster::*;
use windlass_plugin_core::pods::{Outcome, Settled};
use windlass_protocol::pod::{Phase, Pod};
use windlass_protocol::{Bytes, VmName};

#[test]
fn a_placement_reserves_in_one_step_with_the_check() {
    let mut pods = cluster(&[("n1", 4)]);
    let placed = place(&mut pods, &vm("a", 3), "n1");
    assert_eq!((placed.reserved, placed.is_repeat), (cu(3), false));
    assert_eq!((placed.uid.as_str(), placed.revision.as_str()), ("uid of a", "1"));
    assert_eq!((&placed.pod, placed.node.as_str()), (&VmName::on_host("a"), "n1"));
    let open: Vec<_> = pods.placements().collect();
    assert_eq!(open, [(&VmName::on_host("a"), "uid of a", "n1")]);
    let why = refusal(&mut pods, &vm("b", 2), "n1");
    assert_eq!(why, "node n1: 2 of cpu asked, 1 of 4 free");
    place(&mut pods, &other("c", 1), "n1");
    assert_eq!(room(&pods, "n1"), (3, 0), "a pod that is no VM takes room, too");
    assert_eq!(refusal(&mut pods, &vm("b", 1), "n1"), "node n1: 1 of cpu asked, 0 of 3 free");
    assert_eq!(refusal(&mut pods, &vm("b", 1), "n2"), "node n2: not known to the plugin yet");
}

#[test]
fn a_placement_counts_memory_in_whole_slots() {
    let mut pods = cluster(&[("n1", 4)]);
    let mut pod = vm("a", 1);
    pod.requests.mem = Bytes::from_mib(1025);
    assert_eq!(place(&mut pods, &pod, "n1").reserved.mem, Bytes::from_mib(1152));
    assert_eq!(booked(&pods, "n1", "a").unwrap().mem, Bytes::from_mib(1152));
}

#[test]
fn placing_again_is_placing_once() {
    let mut pods = cluster(&[("n1", 4), ("n2", 4)]);
    place(&mut pods, &vm("a", 3), "n1");
    assert!(place(&mut pods, &vm("a", 3), "n1").is_repeat);
    assert_eq!(room(&pods, "n1"), (4, 1));
    let why = refusal(&mut pods, &vm("a", 3), "n2");
    assert_eq!(why, "node n2: the pod is placed on node n1 already");
    assert!(why == self::why(pods.fits(&vm("a", 3), "n2")).unwrap());
    pods.pod_seen(on("n1", vm("a", 3)));
    assert!(place(&mut pods, &vm("a", 3), "n1").is_repeat, "it is bound there");
    assert_eq!(refusal(&mut pods, &vm("a", 3), "n2"), why);
    assert_eq!(room(&pods, "n1"), (4, 1));
}

#[test]
fn the_headroom_of_a_first_ceiling_takes_no_room() {
    let mut pods = cluster(&[("n1", 8)]);
    let placement = place(&mut pods, &vm("a", 1), "n1");
    let first = pods.first_ceiling(&vm("a", 1), 1).unwrap();
    assert_eq!((placement.reserved, first.recorded.size), (cu(1), cu(2)));
    assert_eq!(settle(&mut pods, "a", Outcome::Bound), Settled::Bound);
    pods.bound_with(&placement.pod, "another uid", first);
    pods.bound_with(&placement.pod, &placement.uid, first);
    let mut bound = on("n1", vm("a", 1));
    bound.vm.as_mut().unwrap().ceiling = Some(first.recorded);
    pods.pod_seen(bound.clone());
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(1)));
    // Books that know of no placement: an agent may have been told of it.
    let mut pods = cluster(&[("n1", 8)]);
    pods.pods_listed(vec![bound]);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)));
}

#[test]
fn a_bound_pod_counts_with_what_was_reserved_until_its_agent_speaks() {
    for answered in [true, false] {
        let mut pods = cluster(&[("n1", 8)]);
        place(&mut pods, &vm("a", 2), "n1");
        if answered {
            assert_eq!(settle(&mut pods, "a", Outcome::Bound), Settled::Bound);
            assert_eq!(pods.placements().count(), 1, "the pod does not show it yet");
        }
        pods.pod_seen(on("n1", vm("a", 2)));
        assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)));
        assert_eq!(pods.placements().count(), 0);
        pods.pods_listed(vec![on("n1", vm("a", 2))]);
        assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)), "also after a list");
        assert_eq!(settle(&mut pods, "a", Outcome::Refused), Settled::Unknown, "it is bound");
        assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)));
        // Another leader wrote what it may have.
        pods.pod_seen(on("n1", capped(3, vm("a", 2))));
        assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)));
    }
    // Books that know of no placement.
    let mut pods = cluster(&[("n1", 8)]);
    pods.pods_listed(vec![on("n1", vm("a", 2))]);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(4)));
}

#[test]
fn a_refused_binding_frees_the_room_at_once() {
    let mut pods = cluster(&[("n1", 4)]);
    pods.pod_seen(vm("a", 3));
    place(&mut pods, &vm("a", 3), "n1");
    let Settled::Released(freed) = settle(&mut pods, "a", Outcome::Refused) else { panic!() };
    assert_eq!(freed.nodes().collect::<Vec<_>>(), ["n1"]);
    assert_eq!(room(&pods, "n1"), (4, 4));
    assert_eq!(settle(&mut pods, "a", Outcome::Bound), Settled::Unknown, "it is too late");
    place(&mut pods, &vm("a", 3), "n1");
}

/// The second binding is refused because the first took effect.
#[test]
fn a_refusal_is_no_proof_while_an_earlier_binding_may_take_effect() {
    let mut pods = cluster(&[("n1", 4)]);
    place(&mut pods, &vm("a", 3), "n1");
    place(&mut pods, &vm("a", 3), "n1");
    assert_eq!(settle(&mut pods, "a", Outcome::Refused), Settled::Open);
    assert_eq!(room(&pods, "n1"), (4, 1));
    assert_eq!(read(&mut pods, on("n1", vm("a", 3))), Settled::Bound);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)));
}

#[test]
fn a_pod_that_is_read_without_a_node_may_still_be_bound_at_that_revision() {
    let mut pods = cluster(&[("n1", 4)]);
    place(&mut pods, &vm("a", 3), "n1");
    place(&mut pods, &at("2", vm("a", 3)), "n1");
    for revision in ["1", "2"] {
        assert_eq!(read(&mut pods, at(revision, vm("a", 3))), Settled::Open, "{revision}");
        assert_eq!(room(&pods, "n1"), (4, 1));
    }
    assert!(matches!(read(&mut pods, at("3", vm("a", 3))), Settled::Released(_)));
    assert_eq!(room(&pods, "n1"), (4, 4));
}

#[test]
fn what_a_pod_shows_ends_its_placement() {
    let elsewhere = on("n2", vm("a", 3));
    let failed = Pod { phase: Phase::Failed, ..at("failed", vm("a", 3)) };
    for (shown, free) in [(elsewhere, (4, 0)), (failed, (4, 4))] {
        for is_read in [true, false] {
            let mut pods = cluster(&[("n1", 4), ("n2", 4)]);
            place(&mut pods, &vm("a", 3), "n1");
            let freed = if is_read {
                let Settled::Released(freed) = read(&mut pods, shown.clone()) else { panic!() };
                freed
            } else {
                pods.pod_seen(shown.clone())
            };
            assert_eq!(freed.nodes().collect::<Vec<_>>(), ["n1"]);
            assert_eq!((room(&pods, "n1"), room(&pods, "n2").1), ((4, 4), free.1));
            // What was only read is kept until the watch shows it, too.
            let is_open = is_read && shown.node.is_some();
            assert_eq!(pods.placements().count(), usize::from(is_open));
            pods.pods_listed(vec![vm("a", 3)]);
            assert_eq!(room(&pods, "n2").1, if is_open { free.1 } else { 4 });
            pods.pods_listed(vec![shown.clone()]);
            assert_eq!((room(&pods, "n2").1, pods.placements().count()), (free.1, 0));
        }
    }
}

/// A list that was made before the pod was bound comes after the pod was read.
#[test]
fn a_list_that_is_older_than_a_read_ends_nothing() {
    let mut pods = cluster(&[("n1", 4)]);
    place(&mut pods, &vm("a", 3), "n1");
    assert_eq!(read(&mut pods, on("n1", vm("a", 3))), Settled::Bound);
    for listed in [vec![vm("a", 3)], Vec::new()] {
        pods.pods_listed(listed);
        assert_eq!(room(&pods, "n1"), (4, 1));
        assert_eq!(pods.placements().count(), 1);
    }
    assert!(matches!(settle(&mut pods, "a", Outcome::Read(None)), Settled::Released(_)));
    assert_eq!(room(&pods, "n1"), (4, 4));
}

#[test]
fn a_pod_that_is_gone_is_placed_no_more() {
    for how in 0..3 {
        let mut pods = cluster(&[("n1", 4)]);
        place(&mut pods, &vm("a", 3), "n1");
        match how {
            0 => drop(pods.pod_gone(&VmName::on_host("a"), "uid of a")),
            1 => drop(settle(&mut pods, "a", Outcome::Read(None))),
            _ => {
                let second = Pod { uid: "second".into(), ..vm("a", 3) };
                drop(settle(&mut pods, "a", Outcome::Read(Some(Box::new(second)))));
            }
        }
        assert_eq!(room(&pods, "n1"), (4, 4));
        assert_eq!(settle(&mut pods, "a", Outcome::Bound), Settled::Unknown);
        let why = refusal(&mut pods, &vm("a", 3), "n1");
        assert_eq!(why, "pod default/a has ended or is gone");
        // Another one of its name is placed for itself.
        place(&mut pods, &Pod { uid: "second".into(), ..at("2", vm("a", 4)) }, "n1");
        assert_eq!(booked(&pods, "n1", "a"), Some(cu(4)));
    }
}

#[test]
fn a_placement_shows_that_an_older_pod_of_its_name_is_gone() {
    let mut pods = cluster(&[("n1", 8), ("n2", 8)]);
    pods.pod_seen(on("n1", vm("a", 1)));
    ask(&pods, "a", 4, 4);
    place(&mut pods, &Pod { uid: "second".into(), ..vm("a", 2) }, "n2");
    assert_eq!((booked(&pods, "n1", "a"), booked(&pods, "n2", "a")), (None, Some(cu(2))));
    pods.pod_seen(at("late", on("n1", vm("a", 1))));
    assert_eq!((booked(&pods, "n1", "a"), booked(&pods, "n2", "a")), (None, Some(cu(2))));
}

#[test]
fn a_list_ends_no_placement() {
    let mut pods = cluster(&[("n1", 8)]);
    place(&mut pods, &vm("a", 3), "n1");
    place(&mut pods, &vm("b", 3), "n1");
    settle(&mut pods, "b", Outcome::Bound);
    for listed in [vec![vm("a", 3), vm("b", 3)], Vec::new()] {
        pods.pods_listed(listed);
        assert_eq!(room(&pods, "n1"), (8, 2));
        assert_eq!(pods.placements().count(), 2);
    }
    assert!(matches!(read(&mut pods, at("2", vm("a", 3))), Settled::Released(_)));
    assert!(matches!(read(&mut pods, at("2", vm("b", 3))), Settled::Released(_)));
    assert_eq!(room(&pods, "n1"), (8, 8));
}

/// The list was made before the pod that is placed was created.
#[test]
fn a_list_that_is_older_than_a_placement_does_not_end_it() {
    let mut pods = cluster(&[("n1", 8)]);
    pods.pod_seen(on("n1", vm("a", 1)));
    pods.pod_gone(&VmName::on_host("a"), "uid of a");
    place(&mut pods, &Pod { uid: "second".into(), ..vm("a", 3) }, "n1");
    pods.pods_listed(vec![on("n1", vm("a", 1))]);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)));
    // Nor does one that nothing was known of: whether it is older, only a read can say.
    let third = on("n1", Pod { uid: "third".into(), ..vm("a", 1) });
    pods.pods_listed(vec![third.clone()]);
    pods.pod_seen(at("2", third.clone()));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)));
    let name = VmName::on_host("a");
    let settled = pods.settle(&name, "second", Outcome::Read(Some(Box::new(third))));
    assert!(matches!(settled, Settled::Released(_)));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(4)));
    assert_eq!(pods.placements().count(), 0);
}

#[test]
fn a_placement_survives_its_node() {
    let mut pods = cluster(&[("n1", 8)]);
    place(&mut pods, &vm("a", 3), "n1");
    pods.node_gone("n1");
    assert_eq!(refusal(&mut pods, &vm("b", 1), "n1"), "node n1: not known to the plugin yet");
    pods.node_seen(&node("n1", cu(8)), Held::empty);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)));
}

#[test]
fn a_person_sees_placements_under_way() {
    let mut pods = cluster(&[("n1", 8)]);
    pods.pod_seen(on("n1", other("daemon", 1)));
    place(&mut pods, &vm("a", 3), "n1");
    place(&mut pods, &vm("b", 1), "n1");
    settle(&mut pods, "b", Outcome::Bound);
    let status = pods.status().remove(0);
    assert_eq!((status.allocatable, status.others, status.room), (cu(8), cu(1), cu(7)));
    assert_eq!((status.reserved, status.pods), (cu(4), 3));
    let open = status.placements.iter();
    let open = open.map(|open| (open.pod.name.as_str(), open.reserved, open.is_bound));
    assert_eq!(open.collect::<Vec<_>>(), [("a", cu(3), false), ("b", cu(1), true)]);
}

fn settle(pods: &mut windlass_plugin_core::Pods<Held>, name: &str, outcome: Outcome) -> Settled {
    pods.settle(&VmName::on_host(name), &format!("uid of {name}"), outcome)
}

fn read(pods: &mut windlass_plugin_core::Pods<Held>, pod: Pod) -> Settled {
    let (name, uid) = (pod.name.clone(), pod.uid.clone());
    pods.settle(&name, &uid, Outcome::Read(Some(Box::new(pod))))
}
