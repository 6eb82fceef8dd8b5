//! What filter, prioritize and preempt are told, and which refused pods are looked at again.

use crate::cluster::*;
use std::collections::BTreeSet;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Reason, Short, Sifted, WhyNot};
use windlass_protocol::pod::Pod;
use windlass_protocol::{Resources, VmName};

#[test]
fn advice_takes_no_lock_of_a_node() {
    let mut pods = cluster(&[("n1", 4), ("n2", 8)]);
    pods.pod_seen(on("n2", capped(4, vm("a", 1))));
    let locked = |name: &str| pods.node(name).unwrap().locked.get();
    let before = (locked("n1"), locked("n2"));
    assert_eq!(why(pods.fits(&vm("b", 5), "n1")).unwrap(), "node n1: 5 of cpu asked, 4 of 4 free");
    assert_eq!(why(pods.fits(&vm("b", 4), "n2")), None);
    assert_eq!(why(pods.fits(&vm("b", 1), "n3")).unwrap(), "node n3: not known to the plugin yet");
    assert_eq!(pods.score(&vm("b", 1), "n2"), 3);
    assert!(pods.waiting_for("n1").is_empty());
    assert_eq!((locked("n1"), locked("n2")), before);
}

#[test]
fn advice_follows_permits() {
    let mut pods = cluster(&[("n1", 4)]);
    pods.pod_seen(on("n1", capped(1, vm("a", 1))));
    assert_eq!(why(pods.fits(&vm("b", 3), "n1")), None);
    ask(&pods, "a", 1, 2);
    assert_eq!(why(pods.fits(&vm("b", 3), "n1")).unwrap(), "node n1: 3 of cpu asked, 2 of 4 free");
}

#[test]
fn a_pod_fits_where_it_is_placed_and_nowhere_else() {
    let mut pods = cluster(&[("n1", 4), ("n2", 4)]);
    place(&mut pods, &vm("a", 4), "n1");
    assert_eq!(why(pods.fits(&vm("a", 4), "n1")), None);
    assert!(pods.fits(&vm("a", 4), "n2").is_err());
    assert!(pods.fits(&Pod { uid: "second".into(), ..vm("a", 4) }, "n1").is_err());
    assert!(pods.fits(&ended(vm("a", 4)), "n1").is_err());
}

#[test]
fn many_nodes_are_told_what_each_is_told() {
    let mut pods = cluster(&[("n1", 4), ("n2", 4), ("n3", 1)]);
    place(&mut pods, &vm("a", 4), "n1");
    let second = Pod { uid: "second".into(), ..vm("a", 4) };
    for pod in [vm("a", 4), second, ended(vm("a", 4)), vm("b", 2), on("n2", other("c", 2))] {
        let names = ["n1", "n2", "n3", "n4"].map(str::to_owned);
        let Sifted { fit, others } = pods.fits_each(&pod, &names);
        for node in &names {
            let told: Vec<&Reason> = others
                .iter()
                .filter(|(_, nodes)| nodes.contains(&node.as_str()))
                .map(|(why, _)| why)
                .collect();
            match pods.fits(&pod, node) {
                Ok(()) => assert!(told.is_empty() && fit.contains(&node.as_str()), "{told:?}"),
                Err(why) => assert_eq!(told, [&reason(why)], "{} {node}", pod.name),
            }
        }
        assert_eq!(pods.scores(&pod, &names).to_vec(), names.map(|node| pods.score(&pod, &node)));
    }
}

/// Nodes that lack the same are told together, whatever is free on each: the scheduler counts them by these words.
#[test]
fn nodes_that_lack_the_same_are_told_together() {
    let mut pods = cluster(&[("n1", 4), ("n2", 3), ("n3", 8)]);
    pods.pod_seen(on("n1", capped(3, vm("a", 1))));
    let names = ["n1", "n2", "n3", "n4", "n5"].map(str::to_owned);
    let Sifted { fit, others } = pods.fits_each(&vm("b", 4), &names);
    assert_eq!(fit, ["n3"]);
    let told: Vec<String> =
        others.iter().map(|(why, nodes)| format!("{}: {why}", nodes.join(" "))).collect();
    assert_eq!(
        told,
        [
            "n1 n2: too little cpu is free: 4 asked",
            "n4 n5: the node is not known to the plugin yet"
        ]
    );
}

#[test]
fn the_node_with_most_room_to_grow_is_preferred() {
    let mut pods = cluster(&[("full", 4), ("half", 4), ("empty", 4), ("large", 40)]);
    pods.pod_seen(on("full", capped(3, vm("a", 1))));
    pods.pod_seen(on("half", capped(2, vm("b", 1))));
    let score = |name| pods.score(&vm("c", 1), name);
    let scores: Vec<u8> = ["full", "half", "empty", "large", "unknown"].map(score).into();
    assert_eq!(scores, [0, 2, 7, 9, 0]);
    assert_eq!(pods.score(&other("c", 0), "empty"), 10);
    let memory = Resources { mem: cu(3).mem, ..cu(0) };
    assert_eq!(
        pods.score(&Pod { requests: memory, ..other("c", 0) }, "empty"),
        2,
        "the lesser axis"
    );
}

#[test]
fn nodes_whose_victims_free_too_little_are_dropped() {
    let mut pods = cluster(&[("n1", 8), ("n2", 8)]);
    pods.pod_seen(on("n1", capped(4, vm("a", 1))));
    pods.pod_seen(on("n1", other("b", 3)));
    pods.pod_seen(on("n2", vm("c", 1)));
    ask(&pods, "c", 4, 4);
    let victims = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| format!("uid of {name}")).collect()
    };
    for (units, node, gone, holds) in [
        (1, "n1", &[][..], true),
        (2, "n1", &[], false),
        (4, "n1", &["b"], true),
        (5, "n1", &["a"], true),
        (6, "n1", &["a"], false),
        (8, "n1", &["a", "b"], true),
        (9, "n1", &["a", "b"], false),
        (8, "n2", &["a"], false),
        (8, "n2", &["c", "unknown"], true),
    ] {
        let fits = pods.fits_without(&vm("d", units), node, &victims(gone));
        assert_eq!(fits.is_ok(), holds, "{units} on {node} without {gone:?}: {fits:?}");
    }
    assert!(pods.fits_without(&vm("d", 1), "n3", &BTreeSet::new()).is_err());
    assert_eq!(room(&pods, "n1"), (5, 1), "nothing has changed");
}

#[test]
fn refused_pods_are_looked_at_again_when_room_comes_free() {
    let mut pods = cluster(&[("n1", 4)]);
    place(&mut pods, &vm("a", 4), "n1");
    for (name, units) in [("b", 3), ("c", 2), ("d", 1)] {
        refusal(&mut pods, &vm(name, units), "n1");
    }
    refusal(&mut pods, &other("no vm", 1), "n1");
    pods.refused(&vm("filtered", 1));
    let waiting = |pods: &windlass_plugin_core::Pods<Held>| -> Vec<String> {
        let waiting = pods.waiting_for("n1").into_iter();
        waiting.map(|refused| refused.name.name.clone()).collect()
    };
    assert!(waiting(&pods).is_empty());
    let freed = pods.pod_gone(&VmName::on_host("a"), "uid of a");
    assert_eq!(freed.nodes().collect::<Vec<_>>(), ["n1"]);
    assert_eq!(waiting(&pods), ["b", "d"], "what fits one after the other, the oldest first");
    place(&mut pods, &vm("b", 3), "n1");
    assert_eq!(waiting(&pods), ["d"]);
    // Those that are bound, have ended or are gone wait no more.
    pods.pod_seen(on("n2", vm("d", 1)));
    pods.pod_seen(ended(vm("filtered", 1)));
    assert!(waiting(&pods).is_empty());
    pods.pod_gone(&VmName::on_host("b"), "uid of b");
    assert_eq!(waiting(&pods), ["c"]);
    pods.pod_gone(&VmName::on_host("c"), "uid of c");
    assert!(waiting(&pods).is_empty());
    let locked = pods.node("n1").unwrap();
    assert!(!locked.with_books(|books| books.is_over()));
}

/// The scheduler's watch may be ahead of ours.
#[test]
fn a_pod_that_was_refused_before_the_watch_showed_it_waits_on() {
    let mut pods = cluster(&[("n1", 4)]);
    let waits = |pods: &windlass_plugin_core::Pods<Held>| !pods.waiting_for("n1").is_empty();
    pods.refused(&vm("new", 3));
    pods.pod_seen(vm("new", 3));
    assert!(waits(&pods), "its first word");
    pods.pod_seen(at("labelled", vm("new", 3)));
    assert!(waits(&pods));

    // The word on an earlier pod of its name, and its end, are not of this pod.
    let second = Pod { uid: "second".into(), ..vm("new", 3) };
    pods.refused(&second);
    pods.pod_seen(at("late", vm("new", 3)));
    pods.pod_gone(&VmName::on_host("new"), "uid of new");
    assert!(waits(&pods));
    pods.pod_seen(second.clone());
    assert!(waits(&pods));
    pods.pod_seen(on("n1", second));
    assert!(!waits(&pods));
}

#[test]
fn a_vm_asks_for_its_minimum_where_its_pod_requests_less() {
    let pods = cluster(&[("n1", 1)]);
    let mut pod = vm("a", 0);
    assert_eq!(why(pods.fits(&pod, "n1")), None);
    if let Some(vm) = &mut pod.vm {
        vm.bounds.min = cu(2);
    }
    assert_eq!(why(pods.fits(&pod, "n1")).unwrap(), "node n1: 2 of cpu asked, 1 of 1 free");
}

/// What a node alone says, as it is told of several.
fn reason(why: WhyNot) -> Reason {
    match why {
        WhyNot::NoRoom { short: Short { axis, asked, .. }, .. } => Reason::NoRoom { axis, asked },
        WhyNot::UnknownNode(_) => Reason::UnknownNode,
        WhyNot::Elsewhere { placed, .. } => Reason::Elsewhere(placed),
        WhyNot::Gone(pod) => Reason::Gone(pod),
    }
}
