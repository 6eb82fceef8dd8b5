//! The stock scheduler, and the same with an extender.

use crate::extender::Extender;
use crate::{plane, scheduled};
use serde_json::{Value, json};
use windlass_control_plane::space::{condition, node_of};
use windlass_control_plane::{Scheduler, Space};

#[tokio::test]
async fn the_scheduler_places_a_pod_where_there_is_room() {
    let space = Space::new(scheduled().await).await;
    space.node("small", "1", "1Gi").await;
    let large = space.node("large", "4", "4Gi").await;
    space.pod("pod", json!({"cpu": "2", "memory": "1Gi"}), json!({})).await;
    let pod = space.until_pod("pod", "it is placed", |pod| node_of(pod).is_some()).await;
    assert_eq!(node_of(&pod), Some(large.as_str()));
}

#[tokio::test]
async fn the_scheduler_says_why_a_pod_has_no_place() {
    let space = Space::new(scheduled().await).await;
    space.node("small", "1", "1Gi").await;
    space.pod("pod", json!({"cpu": "2"}), json!({})).await;
    let pod = space.until_pod("pod", "it is refused", |pod| refusal(pod).is_some()).await;
    assert!(refusal(&pod).unwrap().contains("1 Insufficient cpu"), "{:?}", refusal(&pod));
}

#[tokio::test]
async fn only_pods_with_a_vm_go_to_the_extender_and_land_where_it_says() {
    let extender = Extender::start(|args| {
        let names = args["NodeNames"].as_array().unwrap().iter();
        let (there, other): (Vec<_>, Vec<_>) =
            names.map(|name| name.as_str().unwrap()).partition(|name| name.ends_with("-there"));
        let other = other.into_iter().map(|name| (name.to_owned(), json!("not for VMs")));
        json!({"NodeNames": there, "FailedNodes": other.collect::<serde_json::Map<_, _>>()})
    });
    let plane = plane().await;
    let _scheduler = Scheduler::start(plane, "with-filter", &[extender.config()]).await;
    let space = Space::new(plane).await;
    space.node("here", "4", "4Gi").await;
    let there = space.node("there", "4", "4Gi").await;
    let pods = [("plain", "0"), ("vm", "1")];
    for (name, vms) in pods {
        let mut requests = json!({"cpu": "1", "memory": "1Gi"});
        if vms != "0" {
            requests["windlass.dev/vm"] = json!(vms);
        }
        space.pod(name, requests, json!({"schedulerName": "with-filter"})).await;
    }
    let vm = space.until_pod("vm", "it is placed", |pod| node_of(pod).is_some()).await;
    assert_eq!(node_of(&vm), Some(there.as_str()));
    space.until_pod("plain", "it is placed", |pod| node_of(pod).is_some()).await;

    // One node was left, and was not scored.
    let asked = extender.asked();
    let verbs: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(verbs, ["/filter"], "{asked:?}");
    let args = &asked[0].1;
    assert_eq!(args["Pod"]["metadata"]["name"], "vm");
    assert_eq!(args["Nodes"], Value::Null, "names are enough");
}

#[tokio::test]
async fn what_the_extender_says_of_a_node_stands_in_the_pods_condition() {
    let extender = Extender::start(|args| {
        let names = args["NodeNames"].as_array().unwrap().iter();
        let why = "the books have 250m of CPU left";
        let failed = names.map(|name| (name.as_str().unwrap().to_owned(), json!(why)));
        json!({"NodeNames": [], "FailedNodes": failed.collect::<serde_json::Map<_, _>>()})
    });
    let plane = plane().await;
    let _scheduler = Scheduler::start(plane, "with-refusal", &[extender.config()]).await;
    let space = Space::new(plane).await;
    space.node("full", "4", "4Gi").await;
    let requests = json!({"cpu": "1", "windlass.dev/vm": "1"});
    space.pod("vm", requests, json!({"schedulerName": "with-refusal"})).await;
    let pod = space.until_pod("vm", "it is refused", |pod| refusal(pod).is_some()).await;
    let words = refusal(&pod).unwrap();
    assert!(words.contains("1 the books have 250m of CPU left"), "{words}");
}

#[tokio::test]
#[should_panic(expected = "kube-scheduler has ended (exit status: 1):")]
async fn a_scheduler_that_does_not_start_says_why() {
    let two_binders = ["one", "two"].map(
        |name| json!({"urlPrefix": format!("http://{name}"), "bindVerb": "bind", "weight": 1}),
    );
    Scheduler::start(plane().await, "refused", &two_binders).await;
}

/// Why a pod has no place, in the scheduler's words.
fn refusal(pod: &k8s_openapi::api::core::v1::Pod) -> Option<&str> {
    let placed = condition(pod, "PodScheduled").filter(|placed| placed.status == "False")?;
    placed.message.as_deref()
}
