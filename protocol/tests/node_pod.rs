//! A pod as the agent of its node reads it.

#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use windlass_protocol::pod::NodePod;

#[test]
fn an_agent_reads_where_the_vm_of_a_pod_is_and_what_people_say_of_it() {
    let read = read(pod());
    assert_eq!(read.address, Some([10, 0, 0, 7].into()));
    assert!(read.has_monitor && read.problems.is_empty());
    assert_eq!(read.annotations.len(), 1);
    assert_eq!(read.pod.name.name, "a");
}

#[test]
fn what_is_missing_or_not_valid_ends_no_list() {
    let changed = |at: &str, value: Value| {
        let mut pod = pod();
        *pod.pointer_mut(at).unwrap() = value;
        read(pod)
    };
    assert_eq!(changed("/status/podIP", json!("")).address, None);
    let bad = changed("/status/podIP", json!("nowhere"));
    assert_eq!(bad.address, None);
    assert_eq!(bad.problems[0].to_string(), "status.podIP = nowhere: must be an IP address");
    for volumes in
        [json!(null), json!([]), json!([{"name": "windlass", "hostPath": {"path": "/"}}])]
    {
        assert!(!changed("/spec/volumes", volumes).has_monitor);
    }
    // A pod that is no VM may say what it likes.
    assert!(changed("/metadata/labels", json!({})).annotations.is_empty());
    let whole = json!({"metadata": {"name": "a"}});
    assert!(serde_json::from_value::<NodePod>(whole).is_ok());
}

fn read(pod: Value) -> NodePod {
    serde_json::from_value(pod).unwrap()
}

fn pod() -> Value {
    json!({
        "metadata": {
            "name": "a",
            "labels": {"windlass.dev/enabled": "true"},
            "annotations": {"windlass.dev/priority": "7"},
        },
        "spec": {"volumes": [{"name": "windlass", "emptyDir": {}}], "containers": []},
        "status": {"podIP": "10.0.0.7"},
    })
}
