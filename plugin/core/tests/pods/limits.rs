//! VMs' own pods whose containers have limits: a kubelet allocates, and raises the limits afterwards, or never.

use crate::cluster::*;
use crate::resizing::{due, pod, resized, send, settled, told, waits};
use std::time::Duration;
use windlass_plugin_core::Pods;
use windlass_plugin_core::allotment::Denied;
use windlass_plugin_core::pods::{Kind, Written};
use windlass_protocol::pod::Limits;
use windlass_protocol::{Resources, VmName};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn limits_that_stay_low_are_given_up_and_tried_again_later() {
    let mut pods = resized(6);
    see(&mut pods, 1, 1);
    let (mut now, mut waited, mut rests) = (NOW, Vec::new(), Vec::new());
    for _ in 0..8 {
        assert!(waits(&pods, now, "a", 1, 4));
        send(&mut pods, now, "a", Written::Answered);
        see(&mut pods, 4, 1);
        let began = now;
        while due(&pods, now, "a").is_none() {
            now = now.after(SECOND);
            assert!(waits(&pods, now, "a", 1, 4), "its agent goes on asking");
            assert!(now.since(began) <= 60 * SECOND);
        }
        waited.push(now.since(began).as_secs());
        let resize = send(&mut pods, now, "a", Written::Answered).unwrap();
        assert_eq!((resize.to, resize.kind), (cu(1), Kind::GivesUp(Denied::ByLimits)));
        assert_eq!(resize.limits, limits(1));
        see(&mut pods, 1, 1);
        assert_eq!(booked(&pods, "n", "a"), Some(cu(1)), "its room is free again");
        assert!(!waits(&pods, now, "a", 1, 4), "it is told at once");
        assert_eq!((told(&pods, now, "a", 1, 4), due(&pods, now, "a")), (cu(1), None));
        let denied = &pods.status_of("n").unwrap().not_resized[0];
        let until = denied.until.unwrap();
        assert_eq!(denied.why, "limits");
        rests.push(until.since(now).as_secs());
        now = until;
    }
    assert_eq!(waited, [10, 20, 40, 60, 60, 60, 60, 60]);
    assert!(rests.is_sorted() && rests[0] <= 1, "{rests:?}");
    assert!((45..=60).contains(rests.last().unwrap()), "{rests:?}");
    // A slow kubelet raises them in the end.
    assert!(waits(&pods, now, "a", 1, 4));
    send(&mut pods, now, "a", Written::Answered);
    see(&mut pods, 4, 1);
    assert_eq!(due(&pods, now, "a"), None);
    now = now.after(50 * SECOND);
    assert!(waits(&pods, now, "a", 1, 4));
    assert_eq!(due(&pods, now, "a"), None);
    see(&mut pods, 4, 4);
    assert_eq!((told(&pods, now, "a", 1, 4), due(&pods, now, "a")), (cu(4), None));
    assert!(pods.status_of("n").unwrap().not_resized.is_empty());
}

/// The next growth has as long as any other.
#[test]
fn limits_that_rise_in_time_are_not_counted_later() {
    let mut pods = resized(6);
    see(&mut pods, 1, 1);
    let mut now = NOW;
    for (from, to) in [(1, 2), (2, 3), (3, 4)] {
        assert!(waits(&pods, now, "a", from, to));
        send(&mut pods, now, "a", Written::Answered);
        see(&mut pods, to, from);
        for _ in 0..9 {
            assert_eq!(due(&pods, now, "a"), None);
            now = now.after(SECOND);
            assert!(waits(&pods, now, "a", from, to));
        }
        see(&mut pods, to, to);
        assert_eq!((told(&pods, now, "a", from, to), due(&pods, now, "a")), (cu(to), None));
    }
}

/// A VM that wants no more has what it needs: its pod is left alone.
#[test]
fn low_limits_of_a_vm_that_does_not_grow_are_left_alone() {
    let mut pods = resized(6);
    see(&mut pods, 2, 1);
    assert_eq!(told(&pods, NOW, "a", 1, 1), cu(1));
    let later = NOW.after(90 * SECOND);
    for now in [NOW, later] {
        assert_eq!(due(&pods, now, "a").map(|it| it.kind), Some(Kind::Shrinks));
    }
    assert!(pods.status_of("n").unwrap().not_resized.is_empty());
}

/// The watch shows the pod of a VM with limits that equal its requests, and those that are in force.
fn see(pods: &mut Pods<Held>, units: u64, enforced: u64) {
    let revisions = pods.pod_revision(&VmName::on_host("a")).unwrap_or_default().len();
    let mut pod = pod("a", settled(units));
    let container = pod.vm.as_mut().unwrap().container.as_mut().unwrap();
    (container.limits, container.enforced) = (limits(units), limits(enforced));
    pods.pod_seen(at(&"r".repeat(revisions + 1), pod));
}

fn limits(units: u64) -> Limits {
    let Resources { cpu, mem } = cu(units);
    Limits { cpu: Some(cpu), mem: Some(mem) }
}
