//! What a kubelet writes into a pod's status: strategic merge patches, as the real one sends them.

use super::allocations::{Answer, PENDING, uid};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// The one address that a pod of a test can have.
const ADDRESS: &str = "127.0.0.1";

const IN_PROGRESS: &str = "PodResizeInProgress";

/// Its containers run, with what is allocated to them.
pub(super) fn running(pod: &Pod) -> Value {
    running_at(pod, ADDRESS, true)
}

/// The same at an address of its own; it is ready, or not yet.
pub(super) fn running_at(pod: &Pod, address: &str, is_ready: bool) -> Value {
    let types = [
        ("PodReadyToStartContainers", true),
        ("Initialized", true),
        ("ContainersReady", is_ready),
        ("Ready", is_ready),
    ];
    let conditions = types.map(|(kind, is_so)| {
        json!({
            "type": kind, "status": if is_so { "True" } else { "False" },
            "lastTransitionTime": now(), "observedGeneration": pod.metadata.generation,
        })
    });
    patch(
        pod,
        json!({
            "phase": "Running",
            "startTime": now(),
            "hostIP": ADDRESS, "hostIPs": [{"ip": ADDRESS}],
            "podIP": address, "podIPs": [{"ip": address}],
            "conditions": conditions,
            "containerStatuses": containers(pod, pod),
        }),
    )
}

/// It is not admitted.
pub(super) fn rejected(pod: &Pod, answer: &Answer) -> Value {
    let message = format!("Pod was rejected: {}", answer.message);
    patch(pod, json!({"phase": "Failed", "reason": answer.reason, "message": message}))
}

/// Its containers have ended, as they were told to.
pub(super) fn ended(pod: &Pod) -> Value {
    let spec = pod.spec.iter();
    let containers = spec.flat_map(|spec| &spec.containers).map(|container| {
        let ended = json!({"exitCode": 0, "reason": "Completed", "finishedAt": now()});
        json!({
            "name": container.name, "image": container.image, "imageID": "",
            "ready": false, "started": false, "restartCount": 0, "state": {"terminated": ended},
        })
    });
    let containers: Vec<Value> = containers.collect();
    let conditions = ["ContainersReady", "Ready"].map(|kind| {
        json!({"type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now()})
    });
    let ended = json!({
        "phase": "Succeeded", "conditions": conditions, "containerStatuses": containers,
    });
    patch(pod, ended)
}

/// It waits for another size, or waits in vain.
pub(super) fn pending(pod: &Pod, answer: &Answer) -> Value {
    let condition = json!({
        "type": PENDING, "status": "True", "reason": answer.reason, "message": answer.message,
        "lastTransitionTime": now(), "observedGeneration": pod.metadata.generation,
    });
    patch(pod, json!({"conditions": [condition]}))
}

/// It no longer wants another size.
pub(super) fn settled(pod: &Pod) -> Value {
    patch(pod, json!({"conditions": [without(PENDING)]}))
}

/// Another size is allocated, and its containers do not have it yet.
pub(super) fn allocated(before: &Pod, now_allocated: &Pod) -> Value {
    let begun = json!({
        "type": IN_PROGRESS, "status": "True", "lastTransitionTime": now(),
        "observedGeneration": now_allocated.metadata.generation,
    });
    patch(
        now_allocated,
        json!({
            "conditions": [without(PENDING), begun],
            "containerStatuses": containers(now_allocated, before),
        }),
    )
}

/// Its containers have what is allocated.
pub(super) fn resized(pod: &Pod) -> Value {
    patch(
        pod,
        json!({
            "conditions": [without(IN_PROGRESS)],
            "containerStatuses": containers(pod, pod),
        }),
    )
}

/// The list is written whole: what is allocated, and what the containers have.
fn containers(allocated: &Pod, actual: &Pod) -> Vec<Value> {
    let of = |pod: &Pod| pod.spec.clone().unwrap_or_default().containers;
    let actual = of(actual);
    let status = of(allocated).into_iter().map(|container| {
        let has = actual.iter().find(|other| other.name == container.name);
        let started = json!({"running": {"startedAt": now()}});
        json!({
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "containerID": format!("test://{}/{}", uid(allocated), container.name),
            "ready": true,
            "started": true,
            "restartCount": 0,
            "state": started,
            "allocatedResources": container.resources.and_then(|resources| resources.requests),
            "resources": has.and_then(|container| container.resources.clone()),
        })
    });
    status.collect()
}

fn without(condition: &str) -> Value {
    json!({"$patch": "delete", "type": condition})
}

/// The pod's id makes it a conflict if another pod has its name by now.
fn patch(pod: &Pod, mut status: Value) -> Value {
    status["observedGeneration"] = json!(pod.metadata.generation);
    json!({"metadata": {"uid": uid(pod)}, "status": status})
}

fn now() -> String {
    // The API server keeps whole seconds.
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
