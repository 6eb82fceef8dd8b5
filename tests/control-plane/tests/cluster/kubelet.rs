//! The kubelet of these tests does what the rest of a cluster sees of a real one.

use crate::{plane, scheduled};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use windlass_control_plane::space::{condition, node_of, phase_of};
use windlass_control_plane::{Amounts, Kubelet, Space};

#[tokio::test]
async fn a_pod_that_is_placed_runs_and_goes_when_it_is_deleted() {
    let space = Space::new(scheduled().await).await;
    let node = space.node("node", "2", "2Gi").await;
    let _kubelet = Kubelet::start(space.client(), &node).await;
    space.pod("pod", size("1", "1Gi"), json!({"terminationGracePeriodSeconds": 30})).await;
    let pod = space.until_pod("pod", "it runs", |pod| phase_of(pod) == "Running").await;
    assert_eq!(node_of(&pod), Some(node.as_str()));
    assert_eq!(condition(&pod, "Ready").unwrap().status, "True");
    assert_eq!((allocated(&pod), actual(&pod)), (amounts("1", "1Gi"), amounts("1", "1Gi")));
    space.pods().delete("pod", &DeleteParams::default()).await.unwrap();
    space.until_gone("pod").await;
}

#[tokio::test]
async fn a_pod_that_does_not_fit_fails_though_it_was_bound() {
    let space = Space::new(plane().await).await;
    let node = space.node("node", "2", "2Gi").await;
    let _kubelet = Kubelet::start(space.client(), &node).await;
    let bound = json!({"nodeName": node});
    space.pod("first", size("1500m", "1Gi"), bound.clone()).await;
    space.until_pod("first", "it runs", |pod| phase_of(pod) == "Running").await;
    space.pod("cpu", size("1", "512Mi"), bound.clone()).await;
    space.pod("memory", size("500m", "1536Mi"), bound.clone()).await;
    for (name, reason) in [("cpu", "OutOfcpu"), ("memory", "OutOfmemory")] {
        let pod = space.until_pod(name, "it is rejected", |pod| phase_of(pod) == "Failed").await;
        let status = pod.status.unwrap();
        assert_eq!(status.reason.as_deref(), Some(reason));
        assert!(status.message.unwrap().starts_with("Pod was rejected: Node didn't have enough"));
    }
    // What failed takes no room.
    space.pod("second", size("500m", "1Gi"), bound).await;
    space.until_pod("second", "it runs", |pod| phase_of(pod) == "Running").await;
}

#[tokio::test]
async fn a_pod_is_resized_in_place_or_told_to_wait_or_that_it_never_will_be() {
    let space = Space::new(plane().await).await;
    let node = space.node("node", "4", "4Gi").await;
    let _kubelet = Kubelet::start(space.client(), &node).await;
    for name in ["one", "two"] {
        space.pod(name, size("1", "1Gi"), json!({"nodeName": node})).await;
        space.until_pod(name, "it runs", |pod| phase_of(pod) == "Running").await;
    }
    space.resize("one", size("2", "2Gi")).await.unwrap();
    space.until_pod("one", "it has more", |pod| actual(pod) == amounts("2", "2Gi")).await;

    space.resize("two", size("3", "1Gi")).await.unwrap();
    let two = space.until_pod("two", "it waits", |pod| pending(pod) == Some("Deferred")).await;
    assert_eq!(allocated(&two), amounts("1", "1Gi"));

    space.resize("one", size("1", "1Gi")).await.unwrap();
    let two = space.until_pod("two", "its turn", |pod| allocated(pod) == amounts("3", "1Gi")).await;
    assert_eq!(pending(&two), None);
    let settled = |pod: &Pod| condition(pod, "PodResizeInProgress").is_none();
    let done = |pod: &Pod| actual(pod) == amounts("3", "1Gi") && settled(pod);
    space.until_pod("two", "it has it", done).await;

    space.resize("one", size("5", "1Gi")).await.unwrap();
    space.until_pod("one", "in vain", |pod| pending(pod) == Some("Infeasible")).await;
    space.resize("one", size("1", "1Gi")).await.unwrap();
    space.until_pod("one", "it gave up", |pod| pending(pod).is_none()).await;
}

#[tokio::test]
async fn a_kubelet_that_starts_again_knows_what_its_pods_have() {
    let space = Space::new(plane().await).await;
    let node = space.node("node", "2", "2Gi").await;
    let kubelet = Kubelet::start(space.client(), &node).await;
    space.pod("one", size("1", "1Gi"), json!({"nodeName": node})).await;
    space.until_pod("one", "it runs", |pod| phase_of(pod) == "Running").await;
    drop(kubelet);
    space.resize("one", size("2", "1Gi")).await.unwrap();
    space.pod("two", size("1", "1Gi"), json!({"nodeName": node})).await;

    let kubelet = Kubelet::start(space.client(), &node).await;
    space.until_pod("two", "it runs", |pod| phase_of(pod) == "Running").await;
    space.until_pod("one", "it waits", |pod| pending(pod) == Some("Deferred")).await;
    drop(kubelet);
    space.resize("one", size("1", "1Gi")).await.unwrap();

    let _kubelet = Kubelet::start(space.client(), &node).await;
    space.until_pod("one", "it gave up", |pod| pending(pod).is_none()).await;
}

fn size(cpu: &str, memory: &str) -> Value {
    json!({"cpu": cpu, "memory": memory})
}

fn amounts(cpu: &str, memory: &str) -> Amounts {
    Amounts::of(&serde_json::from_value(size(cpu, memory)).unwrap())
}

/// What the kubelet says that it has allocated.
fn allocated(pod: &Pod) -> Amounts {
    Amounts::of(&container(pod).allocated_resources.clone().unwrap())
}

/// What it says that the container has.
fn actual(pod: &Pod) -> Amounts {
    let resources = container(pod).resources.clone().unwrap();
    Amounts::of(&resources.requests.unwrap())
}

fn container(pod: &Pod) -> &ContainerStatus {
    let status = pod.status.as_ref().unwrap();
    &status.container_statuses.as_ref().unwrap()[0]
}

/// Why the pod does not have the size that it wants.
fn pending(pod: &Pod) -> Option<&str> {
    condition(pod, "PodResizePending")?.reason.as_deref()
}
