//! Which pod is admitted, which gets another size, and in which order.

use super::*;
use serde_json::json;

#[test]
fn a_pod_that_does_not_fit_is_rejected_as_the_kubelet_words_it() {
    let mut node = node("2", "2Gi", "3");
    node.admit(&pod("a", "1500m", "1Gi")).unwrap();
    let refusal = node.admit(&pod("b", "1", "1Gi")).unwrap_err();
    let words =
        "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000";
    assert_eq!((refusal.reason, refusal.message.as_str()), ("OutOfcpu", words));
    let refusal = node.admit(&pod("b", "500m", "1025Mi")).unwrap_err();
    assert_eq!(refusal.reason, "OutOfmemory");
    node.admit(&pod("b", "500m", "1Gi")).unwrap();
    node.admit(&pod("c", "0", "0")).unwrap();
    assert_eq!(node.admit(&pod("d", "0", "0")).unwrap_err().reason, "OutOfpods");
    node.forget(&pod("c", "0", "0"));
    node.admit(&pod("d", "0", "0")).unwrap();
}

#[test]
fn what_waits_counts_with_what_it_has() {
    let mut node = node("3", "4Gi", "9");
    node.admit(&pod("a", "2", "1Gi")).unwrap();
    node.admit(&pod("b", "1", "1Gi")).unwrap();
    node.hear(&pod("b", "2", "1Gi"));
    assert_eq!(told(&mut node), ["b Deferred"]);
    assert_eq!(told(&mut node), [""; 0], "the same answer is told once");
    node.hear(&pod("a", "1", "1Gi"));
    assert_eq!(told(&mut node), ["a allocated", "b allocated"], "what shrinks is first");
}

#[test]
fn what_no_node_of_this_size_can_give_is_infeasible() {
    let mut node = node("2", "1Gi", "9");
    node.admit(&pod("a", "1", "512Mi")).unwrap();
    node.hear(&pod("a", "3", "512Mi"));
    assert_eq!(told(&mut node), ["a Infeasible"]);
    let mut back = pod("a", "1", "512Mi");
    assert!(!node.hear(&back));
    let conditions = json!([{"type": PENDING, "status": "True"}]);
    back.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
    assert!(node.hear(&back), "its status is to say that it no longer waits");
    assert_eq!(told(&mut node), [""; 0]);
}

#[test]
fn room_goes_to_priority_then_to_guaranteed_pods_then_to_what_waits_longest() {
    let with = |mut pod: Pod, priority, class: &str| {
        pod.spec.as_mut().unwrap().priority = Some(priority);
        pod.status.as_mut().unwrap().qos_class = Some(class.to_owned());
        pod
    };
    let mut node = node("14", "8Gi", "9");
    node.admit(&pod("room", "10", "1Gi")).unwrap();
    let kinds = [
        ("a", 0, "Burstable"),
        ("b", 0, "Burstable"),
        ("c", 0, "Guaranteed"),
        ("d", 5, "Burstable"),
    ];
    for (name, priority, class) in kinds {
        node.admit(&with(pod(name, "1", "1Gi"), priority, class)).unwrap();
    }
    // The second waits longer than the first.
    for name in ["b", "a", "c", "d"] {
        let (_, priority, class) = kinds.into_iter().find(|kind| kind.0 == name).unwrap();
        node.hear(&with(pod(name, "2", "1Gi"), priority, class));
        assert_eq!(told(&mut node), [format!("{name} Deferred")]);
    }
    for (left, wanted) in [("9", "d"), ("8", "c"), ("7", "b"), ("6", "a")] {
        node.hear(&pod("room", left, "1Gi"));
        assert_eq!(told(&mut node), ["room allocated".to_owned(), format!("{wanted} allocated")]);
    }
}

#[test]
fn a_pod_that_another_kubelet_admitted_has_what_its_status_says() {
    let mut node = node("4", "4Gi", "9");
    let mut old = pod("a", "3", "1Gi");
    old.status = serde_json::from_value(json!({"phase": "Running", "containerStatuses": [{
        "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "allocatedResources": {"cpu": "1", "memory": "1Gi"},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }]}))
    .unwrap();
    assert!(!node.hear(&old));
    node.admit(&pod("b", "2", "1Gi")).unwrap();
    assert_eq!(told(&mut node), ["a Deferred"]);
}

fn node(cpu: &str, memory: &str, pods: &str) -> Allocations {
    let has = json!({"cpu": cpu, "memory": memory, "pods": pods});
    Allocations::of(&serde_json::from_value(has).unwrap())
}

fn pod(name: &str, cpu: &str, memory: &str) -> Pod {
    let requests = json!({"cpu": cpu, "memory": memory});
    let containers = json!([{"name": "main", "resources": {"requests": requests}}]);
    let pod = json!({
        "metadata": {"name": name, "uid": name}, "spec": {"containers": containers}, "status": {},
    });
    serde_json::from_value(pod).unwrap()
}

fn told(node: &mut Allocations) -> Vec<String> {
    let told = node.retry().into_iter().map(|outcome| match outcome {
        Outcome::Allocated { now, .. } => format!("{} allocated", uid(&now)),
        Outcome::Pending(pod, answer) => format!("{} {}", uid(&pod), answer.reason),
    });
    told.collect()
}
