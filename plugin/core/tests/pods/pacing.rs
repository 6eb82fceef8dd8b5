//! When the headroom pod of a node is written again.

use crate::cluster::cu;
use crate::shared::OWN;
use windlass_plugin_core::pods::{Change, Pacing, Write};
use windlass_protocol::{Moment, VmName};

/// Asked each millisecond, a node's change is due after so many.
fn due_after(pacing: &mut Pacing, change: &Change, now: u64) -> u64 {
    let is_due = |at: &u64| !pacing.due(vec![change.clone()], moment(*at)).is_empty();
    (now..now + 200_000).find(is_due).map(|at| at - now).unwrap()
}

#[test]
fn a_node_whose_kubelet_has_no_room_waits_longer_each_time() {
    let mut pacing = Pacing::new(7);
    let mut now = 10_000;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(due_after(&mut pacing, &grows(now), now), 0);
        pacing.written(&grows(now), true, moment(now));
        assert_eq!(due_after(&mut pacing, &gives_up(), now), 0, "that waits for nothing");
        pacing.written(&gives_up(), true, moment(now));
        let wait = due_after(&mut pacing, &grows(now), now);
        assert!(wait <= seconds * 1000 && wait >= seconds * 750, "{seconds} s: {wait} ms");
        assert_eq!(due_after(&mut pacing, &on("other", grows(now).write), now), 0);
        now += wait;
    }
    assert_eq!(due_after(&mut pacing, &grows(now), now + 200_000), 0);
    pacing.written(&gives_up(), true, moment(now + 200_000));
    let wait = due_after(&mut pacing, &grows(now), now + 200_000);
    assert!(wait <= 1000, "what failed long ago is forgotten: {wait} ms");
}

#[test]
fn headroom_that_was_carried_out_ends_the_waits() {
    let mut pacing = Pacing::new(7);
    for _ in 0..6 {
        pacing.written(&gives_up(), true, moment(1000));
    }
    pacing.written(&grows(1), true, moment(40_000));
    assert_eq!(pacing.due(vec![grows(2)], moment(40_001)), [grows(2)]);
    pacing.written(&gives_up(), true, moment(40_002));
    assert!(due_after(&mut pacing, &grows(3), 40_002) <= 1000);
}

#[test]
fn a_pod_that_nothing_needs_any_more_was_no_failure() {
    let mut pacing = Pacing::new(7);
    for has_ended in [false, true] {
        let (uid, revision) = ("u".to_owned(), "1".to_owned());
        let goes = on("n", Write::Delete { uid, revision, has_ended });
        pacing.written(&goes, true, moment(1000));
        assert_eq!(pacing.due(vec![created()], moment(1001)).is_empty(), has_ended);
    }
}

#[test]
fn a_write_that_fails_waits_and_one_that_makes_a_pod_is_given_the_time_to_be_seen() {
    let mut pacing = Pacing::new(7);
    pacing.written(&created(), true, moment(1000));
    assert_eq!(due_after(&mut pacing, &created(), 1000), 2000);
    for failures in 1..4 {
        pacing.written(&grows(1), false, moment(5000));
        let (wait, most) = (due_after(&mut pacing, &grows(1), 5000), 1000 << (failures - 1));
        assert!(wait <= most && wait >= most * 3 / 4, "{failures}: {wait}");
    }
}

fn grows(revision: u64) -> Change {
    let (uid, revision) = ("u".to_owned(), revision.to_string());
    on("n", Write::Resize { uid, revision, size: cu(3), gives_up: false })
}

fn gives_up() -> Change {
    let (uid, revision) = ("u".to_owned(), "0".to_owned());
    on("n", Write::Resize { uid, revision, size: cu(2), gives_up: true })
}

fn created() -> Change {
    on("n", Write::Create { size: cu(1) })
}

fn on(node: &str, write: Write) -> Change {
    let pod = VmName { namespace: OWN.to_owned(), name: format!("headroom-{node}") };
    Change { node: node.to_owned(), pod, write }
}

const fn moment(millis: u64) -> Moment {
    Moment::from_millis(millis)
}
