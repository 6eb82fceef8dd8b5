//! A VM whose ceiling keeps its next pod from a place: it is lowered once nobody can use what it covers.

use crate::cluster::{Held, NOW, booked, cu, on, place, refusal};
use crate::objects::{OBJECT, Object, followed, name, pod};
use std::time::Duration;
use windlass_plugin_core::Pods;
use windlass_plugin_core::pods::CeilingOn;
use windlass_protocol::vm_object::VmObject;

/// As the object is, of which no pod runs.
const HIGH: Object = Object { ceiling: Some(4), has: 1, ..OBJECT };
const RESTS: Duration = Duration::from_secs(12);

#[test]
fn the_ceiling_of_a_vm_that_waits_for_room_is_lowered_to_what_it_starts_with() {
    let mut pods = waiting();
    assert_eq!(pods.ceilings_to_fit(NOW), []);
    assert_eq!(pods.ceilings_to_fit(NOW.after(RESTS - Duration::from_millis(1))), []);
    let due = pods.ceilings_to_fit(NOW.after(RESTS));
    assert_eq!(due, [(name("a-1"), CeilingOn::Object(name("a"), "uid of a".to_owned()))]);
    // What the object says when it is read counts, and not what the watch has shown.
    let read = Object { has: 2, ..HIGH }.seen();
    let next = pods.fitting_ceiling(&name("a-1"), &read, 3).unwrap();
    assert_eq!((next.epoch, next.write, next.size), (3, 3, cu(2)));
    assert_eq!(pods.fitting_ceiling(&name("a-1"), &Object { has: 4, ..HIGH }.seen(), 3), None);
    let other = VmObject { uid: "another".to_owned(), ..read.clone() };
    assert_eq!(pods.fitting_ceiling(&name("a-1"), &other, 3), None);

    let freed =
        pods.object_seen(VmObject { ceiling: Some(next), revision: "lower".to_owned(), ..read });
    assert_eq!(freed.nodes().collect::<Vec<_>>(), ["n"], "the pod is told of it");
    assert_eq!(pods.waiting_for("n").len(), 1);
    assert_eq!(pods.ceilings_to_fit(NOW.after(RESTS * 2)), []);
    place(&mut pods, &pod("a-1"), "n");
    assert_eq!(booked(&pods, "n", "a-1"), Some(cu(2)));
}

#[test]
fn it_stays_while_a_pod_of_the_vm_takes_room_or_has_just_left() {
    let mut pods = waiting();
    assert_eq!(pods.ceilings_to_fit(NOW), []);
    pods.pod_seen(on("n", pod("a-0")));
    assert_eq!(pods.ceilings_to_fit(NOW.after(RESTS)), [], "an agent may grow it");
    assert_eq!(pods.fitting_ceiling(&name("a-1"), &HIGH.seen(), 3), None);
    pods.pod_gone(&name("a-0"), "uid of a-0");
    assert_eq!(pods.ceilings_to_fit(NOW.after(RESTS * 2)), [], "it rests from here on");
    assert_eq!(pods.ceilings_to_fit(NOW.after(RESTS * 3)).len(), 1);
}

#[test]
fn a_pod_that_fits_or_left_has_no_ceiling_lowered() {
    let mut pods = followed(8);
    pods.object_seen(HIGH.seen());
    pods.pod_seen(pod("a-1"));
    assert_eq!([NOW, NOW.after(RESTS)].map(|now| pods.ceilings_to_fit(now)), [[], []]);
    let mut pods = waiting();
    assert_eq!(pods.ceilings_to_fit(NOW), []);
    pods.pod_gone(&name("a-1"), "uid of a-1");
    assert_eq!(pods.ceilings_to_fit(NOW.after(RESTS)), []);
}

/// The pod `a-1` was refused on the one node, which has room for what its VM starts with.
fn waiting() -> Pods<Held> {
    let mut pods = followed(2);
    pods.object_seen(HIGH.seen());
    pods.pod_seen(pod("a-1"));
    assert_eq!(refusal(&mut pods, &pod("a-1"), "n"), "node n: 4 of cpu asked, 2 of 2 free");
    pods
}
