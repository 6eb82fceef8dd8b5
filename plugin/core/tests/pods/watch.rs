//! What the API server's objects make of the books, also where the watch tells of them late or twice.

use crate::cluster::*;
use crate::resizing::{due, grown, pod, resized, send, settled, told};
use std::time::Duration;
use windlass_plugin_core::ceilings::FirstCeiling;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Outcome, Pods, Settled, Written};
use windlass_plugin_core::{Ask, Proposed};
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_view::Scaling;
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

/// The leader listens for long when this VM comes: its agent is silent once the VM itself is here for long.
#[test]
fn a_vm_is_silent_from_when_it_came_to_its_node() {
    let mut pods = cluster(&[("n", 8)]);
    let silent = |pods: &Pods<Held>, after: u64| {
        let now = NOW.after(Duration::from_secs(after));
        pods.views_of(now, NOW, &VmName::on_host("a")).vms[0].condition.reason
            == Scaling::AgentSilent
    };
    pods.pod_seen(on("n", vm("a", 1)));
    assert!(silent(&pods, 100));
    assert!(pods.has_newcomers());
    pods.greet(NOW.after(Duration::from_secs(90)));
    assert_eq!([119, 120].map(|after| silent(&pods, after)), [false, true]);
    // Another pod of its name is another VM, and one whose node becomes known later comes with it.
    pods.pod_gone(&VmName::on_host("a"), "uid of a");
    pods.pod_seen(Pod { uid: "another".to_owned(), ..on("later", vm("a", 1)) });
    pods.greet(NOW.after(Duration::from_secs(200)));
    pods.node_seen(&node("later", cu(8)), Held::empty);
    pods.greet(NOW.after(Duration::from_secs(300)));
    assert_eq!([329, 330].map(|after| silent(&pods, after)), [false, true]);
    assert!(!pods.has_newcomers());
}

#[test]
fn room_for_vms_is_what_other_pods_leave() {
    let mut pods = cluster(&[("n1", 8)]);
    pods.pod_seen(on("n1", other("daemon", 1)));
    pods.pod_seen(on("n1", other("job", 2)));
    pods.pod_seen(other("unbound", 3));
    assert_eq!(room(&pods, "n1"), (5, 5));
    pods.pod_seen(on("n1", vm("a", 1)));
    assert_eq!(room(&pods, "n1"), (5, 1), "it counts with the maximum of its bounds");
    let resized = Pod { requests: cu(3), ..at("resized", on("n1", other("daemon", 1))) };
    assert!(pods.pod_seen(resized).is_empty());
    assert_eq!(room(&pods, "n1"), (3, 0));
    let freed = pods.pod_seen(ended(on("n1", other("job", 2))));
    assert_eq!(freed.nodes().collect::<Vec<_>>(), ["n1"]);
    assert_eq!(room(&pods, "n1"), (5, 1));
}

#[test]
fn a_resize_that_the_api_server_has_lost_is_sent_again() {
    let mut pods = resized(6);
    grown(&mut pods, "a", 4);
    for last in [4, 2] {
        assert_eq!(told(&pods, NOW, "a", last, 2), cu(2));
    }
    let resize = send(&mut pods, NOW, "a", Written::Answered);
    assert!(resize.is_some());
    assert_eq!(due(&pods, NOW, "a"), None, "the watch will show it");
    let before = at(pods.pod_revision(&VmName::on_host("a")).unwrap(), pod("a", settled(4)));
    pods.pods_listed(vec![before]);
    assert_eq!(send(&mut pods, NOW, "a", Written::Unknown), resize);
}

#[test]
fn a_pod_counts_until_it_has_ended_or_is_gone() {
    let mut pods = cluster(&[("n1", 8)]);
    for pod in [vm("a", 1), other("b", 4)] {
        let bound = on("n1", pod);
        pods.pod_seen(bound.clone());
        assert_eq!(room(&pods, "n1").1, 4);
        pods.pod_seen(Pod { is_terminating: true, ..at("deleted", bound.clone()) });
        assert_eq!(room(&pods, "n1").1, 4, "a pod that is being deleted still runs");
        assert!(!pods.pod_gone(&bound.name, &bound.uid).is_empty());
        assert_eq!(room(&pods, "n1"), (8, 8));
    }
    let bound = on("n1", Pod { uid: "third".into(), ..vm("a", 1) });
    pods.pod_seen(bound.clone());
    assert!(!pods.pod_seen(ended(bound)).is_empty());
    assert_eq!(room(&pods, "n1"), (8, 8));
}

#[test]
fn a_node_that_is_over_full_shows_it_and_grants_nothing() {
    let mut pods = cluster(&[("n1", 4)]);
    pods.pod_seen(on("n1", capped(2, vm("a", 1))));
    ask(&pods, "a", 2, 2);
    let large = Resources { cpu: MilliCpu::from_cores(7), ..Resources::ZERO };
    pods.pod_seen(Pod { requests: large, ..on("n1", other("b", 0)) });
    let status = pods.status_of("n1").unwrap();
    assert_eq!(status.room, Resources { mem: Bytes::from_gib(4), ..Resources::ZERO });
    assert_eq!(status.over, Resources { cpu: MilliCpu::from_cores(5), ..Resources::ZERO });
    let granted = ask(&pods, "a", 2, 3).permit;
    assert_eq!(granted, Resources { cpu: MilliCpu::from_cores(2), mem: Bytes::from_gib(3) });
    let why = refusal(&mut pods, &vm("c", 1), "n1");
    assert_eq!(why, "node n1: 1 of cpu asked, 0 of 0 free");
}

#[test]
fn a_pod_of_the_same_name_with_another_uid_inherits_nothing() {
    let mut pods = cluster(&[("n1", 8)]);
    pods.pod_seen(on("n1", capped(2, vm("a", 1))));
    assert_eq!(ask(&pods, "a", 2, 4).permit, cu(4));
    let second = on("n1", capped(1, Pod { uid: "second".into(), ..vm("a", 1) }));
    let freed = pods.pod_seen(second.clone());
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(1)));
    assert!(!freed.is_empty());
    // What comes late of the first one changes nothing, its end included.
    pods.pod_seen(at("late", on("n1", vm("a", 1))));
    pods.pod_gone(&VmName::on_host("a"), "uid of a");
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(1)));
    pods.pod_gone(&VmName::on_host("a"), &second.uid);
    pods.pod_seen(at("late", on("n1", vm("a", 1))));
    assert_eq!(booked(&pods, "n1", "a"), None);
}

#[test]
fn a_pod_that_a_late_word_displaced_returns_once_the_other_is_gone() {
    let mut pods = cluster(&[("n1", 8)]);
    let current = on("n1", Pod { uid: "current".into(), ..other("b", 2) });
    pods.pod_seen(current.clone());
    // A watch that starts again from an old revision tells of a pod that was there before.
    pods.pod_seen(on("n1", other("b", 3)));
    pods.pod_gone(&VmName::on_host("b"), "uid of b");
    pods.pod_seen(current);
    assert_eq!(room(&pods, "n1"), (6, 6));
}

#[test]
fn late_and_repeated_words_change_nothing() {
    let mut pods = cluster(&[("n1", 8)]);
    let bound = on("n1", vm("a", 1));
    let words = [
        at("1", vm("a", 1)),
        at("2", bound.clone()),
        at("3", capped(3, bound.clone())),
        Pod { is_terminating: true, ..at("4", capped(3, bound.clone())) },
        Pod { is_terminating: true, ..at("5", ended(bound)) },
    ];
    let mut booked = Vec::new();
    for word in &words {
        pods.pod_seen(word.clone());
        let now = room(&pods, "n1");
        booked.push(now.1);
        for late in &words[..=booked.len() - 1] {
            assert!(pods.pod_seen(late.clone()).is_empty());
            assert_eq!(room(&pods, "n1"), now, "{late:?}");
        }
        // Also one that was not delivered at its time.
        let never = at("0", vm("a", 1));
        if booked.len() > 1 {
            assert!(pods.pod_seen(never).is_empty());
            assert_eq!(room(&pods, "n1"), now);
        }
    }
    assert_eq!(booked, [8, 4, 5, 5, 8]);
    pods.pod_gone(&VmName::on_host("a"), "uid of a");
    for late in words {
        assert!(pods.pod_seen(late).is_empty());
        assert_eq!(room(&pods, "n1"), (8, 8), "it is gone");
    }
}

/// Found by the simulation: a request that may be one of an earlier VM was answered with the headroom of a ceiling, which is not
/// reserved.
#[test]
fn a_vm_of_a_name_that_was_there_is_told_no_more_than_is_reserved_for_it() {
    let (mut pods, name) = after_another_of_its_name(2);
    place(&mut pods, &vm("a", 1), "n1");
    let bound = FirstCeiling::new(1, cu(2), None);
    pods.node("n1").unwrap().with_books(|books| books.ceiling_bound(&name, bound));
    place(&mut pods, &vm("b", 1), "n1");
    assert_eq!(ask(&pods, "a", 2, 2).permit, cu(1), "the other had 2");
    assert_eq!((booked(&pods, "n1", "a"), room(&pods, "n1")), (Some(cu(1)), (2, 0)));
}

/// Found by the simulation: it was told what it counts with, though it was bound past the plugin to a node without room for that.
#[test]
fn a_vm_of_a_name_that_was_there_does_not_grow_into_what_it_counts_with() {
    let (mut pods, name) = after_another_of_its_name(5);
    pods.pod_seen(on("n1", vm("b", 4)));
    pods.pod_seen(on("n1", vm("a", 1)));
    let first_word = Ask { names_permits: true, ..Ask::from(cu(1)) };
    let node = pods.node("n1").unwrap();
    let told = node.with_books(|books| {
        assert_eq!(books.propose(NOW, &name, first_word).unwrap(), Proposed::Waits);
        let write = books.ceiling_due(&name, 1).unwrap();
        // The answer to the write comes after that to the agent.
        let told = books.request(NOW, &name, first_word).unwrap().permit;
        books.ceiling_written(&name, write.next);
        told
    });
    assert_eq!((told, booked(&pods, "n1", "a")), (cu(1), Some(cu(4))));
    assert_eq!(ask(&pods, "a", 1, 2).permit, cu(1));
}

/// Found by the simulation: its agent's first word was doubted, and so it was granted all that it counted with.
#[test]
fn a_vm_past_the_plugin_does_not_grow_into_what_it_counts_with_on_a_node_without_room() {
    let mut pods = cluster(&[("n1", 5)]);
    pods.pod_seen(on("n1", vm("b", 3)));
    pods.pod_seen(on("n1", vm("a", 1)));
    let (name, node) = (VmName::on_host("a"), pods.node("n1").unwrap());
    let told = |wanted| node.with_books(|books| permit(books, NOW, &name, Ask::from(cu(wanted))));
    assert_eq!(told(1).permit, cu(1));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(4)), "it may have been permitted more before");
    let more = ask(&pods, "a", 2, 3);
    assert_eq!((more.permit, more.short.len()), (cu(2), 2), "it says that it has 2");
}

/// Until the list, its agent is answered by the name of its VM as the other's was.
#[test]
fn a_deleted_pod_that_a_list_brings_back_counts_with_what_was_told_by_its_name() {
    let mut pods = cluster(&[("n1", 8)]);
    let [first, second] = [("first", 1), ("second", 4)]
        .map(|(uid, units)| on("n1", capped(units, Pod { uid: uid.into(), ..vm("a", 1) })));
    pods.pod_seen(first.clone());
    pods.pod_gone(&first.name, "first");
    pods.pod_seen(second);
    let first_word = Ask { names_permits: true, ..Ask::from(cu(1)) };
    let node = pods.node_of(&first.name).unwrap();
    node.with_books(|books| permit(books, NOW, &first.name, first_word));
    assert_eq!(ask(&pods, "a", 1, 3).permit, cu(3));
    pods.pods_listed(vec![first]);
    assert_eq!((pods.uid_of(&VmName::on_host("a")), room(&pods, "n1")), (Some("first"), (8, 5)));
}

/// Found by the simulation: a VM had what it was permitted before, and its pod was placed again for what it requests.
#[test]
fn a_pod_whose_node_an_api_server_that_went_back_does_not_know_is_placed_there_with_what_it_had() {
    let before = vm("a", 1);
    let placed = || {
        let mut pods = cluster(&[("n1", 8), ("n2", 8)]);
        place(&mut pods, &before, "n1");
        pods
    };
    let mut shown = placed();
    shown.pod_seen(on("n1", before.clone()));
    ask(&shown, "a", 1, 3);
    shown.pods_listed(vec![before.clone()]);
    // Its watch had not shown the node yet.
    let mut bound = placed();
    bound.settle(&before.name, &before.uid, Outcome::Bound);
    ask(&bound, "a", 1, 3);
    let read = at("0", before.clone());
    bound.settle(&before.name, &before.uid, Outcome::Read(Some(Box::new(read))));
    for pods in [shown, bound] {
        assert_eq!(room(&pods, "n1"), (8, 8));
        for (node, has) in [("n1", 3), ("n2", 1)] {
            let mut pods = pods.clone();
            place(&mut pods, &before, node);
            assert_eq!(booked(&pods, node, "a"), Some(cu(has)));
            pods.pod_seen(on(node, before.clone()));
            assert_eq!(booked(&pods, node, "a"), Some(cu(has)));
        }
    }
}

/// Its node gave what it had to others meanwhile: that is so, and nothing grows there until it is set right.
#[test]
fn a_pod_that_lost_its_node_waits_for_no_more_than_it_asks_for() {
    let mut pods = cluster(&[("n1", 4)]);
    let before = vm("a", 1);
    place(&mut pods, &before, "n1");
    pods.pod_seen(on("n1", before.clone()));
    ask(&pods, "a", 1, 3);
    pods.pods_listed(vec![before.clone(), on("n1", other("b", 2))]);
    place(&mut pods, &before, "n1");
    assert_eq!((booked(&pods, "n1", "a"), room(&pods, "n1")), (Some(cu(3)), (2, 0)));
}

/// It may have had more than the one that came in its place.
#[test]
fn a_deleted_pod_that_a_list_brings_back_counts_with_its_own_ceiling_too() {
    let mut pods = cluster(&[("n1", 8)]);
    let [first, second] = [("first", 4), ("second", 1)]
        .map(|(uid, units)| on("n1", capped(units, Pod { uid: uid.into(), ..vm("a", 1) })));
    pods.pod_seen(first.clone());
    pods.pod_gone(&first.name, "first");
    let (first_word, name) = (Ask { names_permits: true, ..Ask::from(cu(1)) }, first.name.clone());
    pods.pod_seen(second);
    let node = pods.node_of(&name).unwrap();
    node.with_books(|books| permit(books, NOW, &name, first_word));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(1)));
    pods.pods_listed(vec![first]);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(4)));
    // Its agent sets that right.
    for _ in 0..2 {
        assert_eq!(ask(&pods, "a", 4, 4).permit, cu(4));
    }
    for last in [4, 2] {
        assert_eq!(ask(&pods, "a", last, 2).permit, cu(2));
    }
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)));
}

#[test]
fn a_recorded_ceiling_is_followed_until_the_agent_speaks() {
    let mut pods = cluster(&[("n1", 8)]);
    for (units, counts) in [(2, 2), (3, 3), (1, 2)] {
        pods.pod_seen(on("n1", capped(units, vm("a", 2))));
        assert_eq!(booked(&pods, "n1", "a"), Some(cu(counts)), "not below what it requests");
    }
    assert_eq!(ask(&pods, "a", 2, 3).permit, cu(3));
    pods.pod_seen(on("n1", capped(4, vm("a", 2))));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)));
    assert_eq!(ask(&pods, "a", 3, 1).permit, cu(1));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(3)), "its agent may not have heard that");
    assert_eq!(ask(&pods, "a", 1, 1).permit, cu(1));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)), "its pod requests as much");
    assert_eq!(ask(&pods, "a", 1, 2).permit, cu(2));
}

/// It was an older pod of the name, and is so once the placement is over, too.
#[test]
fn a_pod_that_the_watch_shows_during_a_placement_of_another_never_displaces_that() {
    let mut pods = cluster(&[("n1", 8)]);
    let older = at("1", Pod { uid: "older".into(), ..vm("a", 1) });
    let placed = at("3", vm("a", 2));
    place(&mut pods, &placed, "n1");
    pods.pod_seen(older.clone());
    pods.settle(&placed.name, &placed.uid, Outcome::Bound);
    pods.pod_seen(at("4", on("n1", placed.clone())));
    pods.pod_seen(older);
    assert_eq!(pods.uid_of(&placed.name), Some(placed.uid.as_str()));
}

/// A watch may tell again what it told before.
#[test]
fn a_late_word_on_a_node_changes_nothing_unless_a_list_says_so() {
    let mut pods: Pods<Held> = Pods::default();
    let word = |units: u64| windlass_protocol::node::Node {
        revision: format!("{units} units"),
        ..node("n1", cu(units))
    };
    let size = |pods: &Pods<Held>| pods.status_of("n1").unwrap().allocatable;
    for units in [8, 6, 3] {
        pods.node_seen(&word(units), Held::empty);
    }
    for late in [8, 6] {
        pods.node_seen(&word(late), Held::empty);
        assert_eq!(size(&pods), cu(3), "it is {late} no more");
    }
    pods.nodes_listed(vec![word(6)], |_| Held::empty());
    assert_eq!(size(&pods), cu(6), "the API server went back");
    pods.node_seen(&word(3), Held::empty);
    assert_eq!(size(&pods), cu(3), "and the node shrank again");
}

#[test]
fn pods_wait_for_their_node() {
    let mut pods: Pods<Held> = Pods::default();
    pods.pod_seen(on("n1", capped(2, vm("a", 1))));
    pods.pod_seen(on("n1", other("b", 3)));
    assert!(pods.node_of(&VmName::on_host("a")).is_none());
    pods.node_seen(&node("n1", cu(8)), Held::empty);
    assert_eq!((room(&pods, "n1"), booked(&pods, "n1", "a")), ((5, 3), Some(cu(2))));

    // The node is gone, and returns.
    ask(&pods, "a", 2, 4);
    pods.node_gone("n1");
    assert!(pods.nodes().next().is_none() && pods.node_of(&VmName::on_host("a")).is_none());
    pods.pod_gone(&VmName::on_host("b"), "uid of b");
    pods.node_seen(&node("n1", cu(8)), Held::empty);
    assert_eq!((room(&pods, "n1"), booked(&pods, "n1", "a")), ((8, 4), Some(cu(4))), "it runs on");
}

#[test]
fn a_node_that_shrinks_keeps_its_books() {
    let mut pods = cluster(&[("n1", 8)]);
    pods.pod_seen(on("n1", capped(4, vm("a", 1))));
    ask(&pods, "a", 4, 4);
    assert!(pods.node_seen(&node("n1", cu(3)), || panic!("it is known")).is_empty());
    assert_eq!(room(&pods, "n1"), (3, 0));
    assert_eq!(pods.status_of("n1").unwrap().over, cu(1));
    assert_eq!(
        pods.nodes_listed(vec![node("n1", cu(6))], |_| panic!("it is known")).nodes().count(),
        1
    );
    assert_eq!(room(&pods, "n1"), (6, 2));
    pods.nodes_listed(vec![node("n2", cu(6))], |_| Held::empty());
    assert_eq!(pods.nodes().map(|(name, _)| name).collect::<Vec<_>>(), ["n2"]);
}

#[test]
fn a_list_replaces_all_that_the_watch_said() {
    let mut pods = cluster(&[("n1", 16)]);
    for pod in [vm("a", 1), vm("b", 1), other("c", 2), other("d", 2)] {
        pods.pod_seen(on("n1", pod));
    }
    assert_eq!(ask(&pods, "a", 4, 2).permit, cu(2));
    // An earlier copy of the API server's data: `b` is not bound yet, `c` has ended, and `d` is gone.
    let listed =
        vec![on("n1", vm("a", 1)), vm("b", 1), ended(other("c", 2)), on("n1", other("e", 1))];
    pods.pods_listed(listed);
    assert_eq!(room(&pods, "n1"), (15, 13));
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)), "its agent has spoken");
    pods.pod_seen(on("n1", other("d", 2)));
    assert_eq!(room(&pods, "n1"), (15, 13), "it is gone, and that word is late");
    pods.pods_listed(vec![on("n1", other("d", 2))]);
    assert_eq!(room(&pods, "n1"), (14, 14), "a list knows better");
}

#[test]
fn a_pod_that_becomes_a_vm_moves_into_the_books_and_stays_there() {
    let mut pods = cluster(&[("n1", 8)]);
    pods.pod_seen(on("n1", other("a", 2)));
    assert_eq!(room(&pods, "n1"), (6, 6));
    pods.pod_seen(at("labelled", on("n1", capped(3, vm("a", 2)))));
    assert_eq!(room(&pods, "n1"), (8, 5));
    // Its agent may have been granted more than the pod requests.
    pods.pod_seen(at("unlabelled", on("n1", other("a", 2))));
    assert_eq!(room(&pods, "n1"), (8, 5));
    pods.pods_listed(vec![at("unlabelled", on("n1", other("a", 2)))]);
    assert_eq!(room(&pods, "n1"), (8, 5));
}

#[test]
fn sums_of_absurd_requests_do_not_overflow() {
    let mut pods = cluster(&[("n1", 8)]);
    let most = Resources::new(MilliCpu::from_milli(u64::MAX), Bytes::from_bytes(u64::MAX));
    for name in ["a", "b", "c"] {
        pods.pod_seen(on("n1", Pod { requests: most, ..other(name, 0) }));
    }
    assert_eq!(room(&pods, "n1"), (0, 0));
    for name in ["a", "b", "c"] {
        pods.pod_gone(&VmName::on_host(name), &format!("uid of {name}"));
    }
    assert_eq!(room(&pods, "n1"), (8, 8));
    let over = pods.node("n1").unwrap().with_books(|books| books.is_over());
    assert!(!over);
}

/// The API server binds a pod, and its plugin reads that before the watch tells of it.
#[test]
fn a_placement_that_was_read_ends_once_the_watch_shows_the_same() {
    let mut pods = cluster(&[("n1", 8)]);
    let pod = vm("a", 2);
    pods.place(&pod, "n1").unwrap();
    let bound = at("bound", on("n1", pod.clone()));
    let read = Outcome::Read(Some(Box::new(bound.clone())));
    assert_eq!(pods.settle(&pod.name, &pod.uid, read), Settled::Bound);
    pods.pod_seen(bound);
    assert_eq!(pods.placements().count(), 0);
    assert_eq!(booked(&pods, "n1", "a"), Some(cu(2)));
}

/// A node of this size, which a VM has left, and the VM's name.
fn after_another_of_its_name(units: u64) -> (Pods<Held>, VmName) {
    let mut pods = cluster(&[("n1", units)]);
    let name = VmName::on_host("a");
    pods.pod_seen(on("n1", Pod { uid: "first".into(), ..vm("a", 1) }));
    pods.pod_gone(&name, "first");
    (pods, name)
}
