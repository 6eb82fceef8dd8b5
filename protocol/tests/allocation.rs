//! What a kubelet has allocated to a pod, and what the pod has for sure.

#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use windlass_protocol::pod::{Allocation, Pending, Pod};
use windlass_protocol::{Bytes, MilliCpu, Resources};

#[test]
fn a_pod_has_for_sure_what_its_spec_and_its_kubelet_both_say() {
    for (what, spec, allocated, seen, condition, sure, settled) in [
        ("not admitted", 4, None, 1, None, 0, false),
        ("admitted", 4, Some(4), 1, None, 4, true),
        ("the kubelet shrinks it", 2, Some(4), 1, None, 2, false),
        ("the kubelet grows it", 4, Some(2), 1, None, 2, false),
        ("the spec is news to the kubelet", 4, Some(4), 0, None, 4, false),
        ("deferred", 4, Some(2), 1, Some("Deferred"), 2, false),
        ("given up", 2, Some(2), 1, Some("Deferred"), 2, false),
    ] {
        let it = allocation(spec, allocated, seen, condition);
        assert_eq!((it.sure(), it.is_settled()), (size(sure), settled), "{what}");
    }
}

#[test]
fn a_resize_waits_for_a_reason() {
    for (reason, pending) in [
        ("Deferred", Pending::Deferred),
        ("Infeasible", Pending::Infeasible),
        ("LaterWord", Pending::Other),
    ] {
        assert_eq!(allocation(4, Some(2), 1, Some(reason)).pending, Some(pending));
    }
}

/// An older kubelet does not say which spec it has seen.
#[test]
fn a_kubelet_that_does_not_say_what_it_has_seen_has_not_seen_it() {
    let mut pod = pod(4, Some(4), 1, None);
    pod["status"].as_object_mut().unwrap().remove("observedGeneration");
    assert!(!read(&pod).is_settled());
}

#[test]
fn only_vms_and_labelled_pods_carry_what_is_allocated() {
    let mut pod = pod(4, Some(4), 1, None);
    for (labels, is_headroom, is_vm) in [
        (json!({"windlass.dev/headroom": "true"}), true, false),
        (json!({"windlass.dev/headroom": "false"}), false, false),
        (json!({"windlass.dev/enabled": "true"}), false, true),
        (json!({"windlass.dev/enabled": "true", "windlass.dev/headroom": "true"}), false, true),
        (json!({}), false, false),
    ] {
        pod["metadata"]["labels"] = labels.clone();
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        assert_eq!((pod.is_headroom, pod.vm.is_some()), (is_headroom, is_vm), "{labels}");
        assert_eq!(pod.allocation.is_some(), is_headroom || is_vm, "{labels}");
    }
}

fn allocation(spec: u64, allocated: Option<u64>, seen: i64, condition: Option<&str>) -> Allocation {
    read(&pod(spec, allocated, seen, condition))
}

fn read(pod: &Value) -> Allocation {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    *pod.allocation.unwrap()
}

fn pod(spec: u64, allocated: Option<u64>, seen: i64, condition: Option<&str>) -> Value {
    let amounts = |count: u64| json!({"cpu": count.to_string(), "memory": format!("{count}Gi")});
    let status = allocated.map(|count| {
        json!({"name": "a", "allocatedResources": amounts(count), "resources": {"requests": amounts(count)}})
    });
    let conditions = condition.map(|reason| json!({"type": "PodResizePending", "reason": reason}));
    json!({
        "metadata": {"name": "p", "generation": 1, "labels": {"windlass.dev/headroom": "true"}},
        "spec": {"containers": [{"name": "a", "resources": {"requests": amounts(spec)}}]},
        "status": {
            "observedGeneration": seen,
            "containerStatuses": Vec::from_iter(status),
            "conditions": Vec::from_iter(conditions),
        },
    })
}

fn size(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
