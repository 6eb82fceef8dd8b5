//! Which VMs the pods of a node declare that are VMs themselves.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use windlass_agent_core::Vm;
use windlass_agent_core::declared::{INFORMANT_PORT, Terms};
use windlass_agent_core::own_pods::{OwnPods, Step};
use windlass_protocol::pod::NodePod;
use windlass_protocol::{CpuLimit, MilliCpu, Usual, VmName};

const BOUNDS: &str = r#"{"min":{"cpu":1,"mem":"512Mi"},"max":{"cpu":4,"mem":"2Gi"}}"#;

#[test]
fn a_pod_that_runs_declares_its_vm() {
    let mut node = node();
    assert_eq!(seen(&mut node, &with("/status/phase", json!("Pending"))), []);
    let (vm, uid) = managed(&seen(&mut node, &pod()));
    assert_eq!((vm.info.name.clone(), uid.as_str()), (name(), "uid-of-a"));
    assert_eq!(vm.info.bounds.max.cpu, MilliCpu::from_cores(4));
    assert_eq!(vm.guest.informant, ([10, 0, 0, 7], INFORMANT_PORT).into());
    assert_eq!(vm.guest.advertise, Some([10, 0, 0, 1].into()));
    assert_eq!(vm.info.cpu_limit, None, "nothing limits its container");
    assert_eq!(seen(&mut node, &pod()), [], "nothing new");
    // Its node does not answer for a while.
    assert_eq!(seen(&mut node, &with("/status/phase", json!("Unknown"))), []);
}

/// A guest takes parked vCPUs back only as far as the kubelet lets it.
#[test]
fn a_guest_whose_container_is_limited_is_trusted_with_what_it_parks() {
    let limits = json!({"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 1}});
    let limited = with("/spec/containers/0/resources", limits);
    assert_eq!(managed(&seen(&mut node(), &limited)).0.info.cpu_limit, Some(CpuLimit::Trust));
    let more = json!({"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 8}});
    let not_limited = with("/spec/containers/0/resources", more);
    assert_eq!(managed(&seen(&mut node(), &not_limited)).0.info.cpu_limit, None, "it may use 8");
}

#[test]
fn a_vm_is_declared_no_more_once_its_pod_has_ended_or_is_not_to_be_scaled() {
    let gone = [Step::Forget(name())];
    for (why, at, value) in [
        ("the label", "/metadata/labels", json!({"windlass.dev/enabled": "false"})),
        ("it has ended", "/status/phase", json!("Failed")),
        ("another object", "/metadata/labels/vm.neon.tech~1name", json!("b")),
    ] {
        let mut node = node();
        managed(&seen(&mut node, &pod()));
        let changed = with(at, value);
        assert_eq!(seen(&mut node, &changed), gone, "{why}");
        assert_eq!(seen(&mut node, &changed), [], "{why}: once");
    }
    let mut node = node();
    managed(&seen(&mut node, &pod()));
    assert_eq!(node.pod_gone(&name(), "another pod of that name"), None);
    let another = with("/metadata/uid", json!("another"));
    let steps = seen(&mut node, &another);
    assert_eq!(steps[0], gone[0], "a pod of the same name is another VM");
    assert_eq!(managed(&steps).1, "another");
    assert_eq!(node.pods_listed(&[]), gone);
}

#[test]
fn what_is_not_valid_is_said_and_withdraws_nothing() {
    for (field, at, value) in [
        ("windlass.dev/bounds", "/metadata/annotations/windlass.dev~1bounds", json!("nonsense")),
        ("status.podIP", "/status/podIP", json!("nowhere")),
        ("spec.volumes", "/spec/volumes", json!([{"name": "windlass"}])),
    ] {
        let wrong = with(at, value);
        let mut node = node();
        let steps = seen(&mut node, &wrong);
        let [Step::Complain { problems, .. }] = &steps[..] else { panic!("{field}: {steps:?}") };
        assert!(problems.iter().any(|it| it.to_string().starts_with(field)), "{problems:?}");
        assert_eq!(seen(&mut node, &wrong), [], "{field}: once");
        let steps = seen(&mut node, &pod());
        assert!(matches!(&steps[0], Step::Complain { problems, .. } if problems.is_empty()));
        managed(&steps);
        let steps = seen(&mut node, &wrong);
        let [Step::Complain { .. }] = &steps[..] else { panic!("{field}: {steps:?}") };
    }
}

#[test]
fn a_pod_without_bounds_keeps_its_size() {
    let without = with("/metadata/annotations", json!({}));
    let steps = seen(&mut node(), &without);
    let [Step::Complain { problems, .. }] = &steps[..] else { panic!("{steps:?}") };
    assert!(problems[0].to_string().starts_with("windlass.dev/bounds"), "{problems:?}");
}

/// It would name another folder.
#[test]
fn a_uid_that_is_no_folders_name_declares_nothing() {
    for uid in ["../b", "", "a/b"] {
        let steps = seen(&mut node(), &with("/metadata/uid", json!(uid)));
        let is_managed = steps.iter().any(|step| matches!(step, Step::Manage { .. }));
        assert!(!is_managed, "{uid}: {steps:?}");
    }
}

fn node() -> OwnPods {
    OwnPods::new(Terms { usual: Usual::default(), advertise: Some([10, 0, 0, 1].into()) })
}

fn seen(node: &mut OwnPods, pod: &Value) -> Vec<Step> {
    let pod: NodePod = serde_json::from_value(pod.clone()).unwrap();
    node.pod_seen(&pod)
}

/// The VM that is to be managed, and its UID.
fn managed(steps: &[Step]) -> (Vm, String) {
    match steps {
        [.., Step::Manage { vm, uid }] => (vm.clone(), uid.clone()),
        _ => panic!("{steps:?}"),
    }
}

fn with(at: &str, value: Value) -> Value {
    let mut pod = pod();
    *pod.pointer_mut(at).unwrap() = value;
    pod
}

fn pod() -> Value {
    json!({
        "metadata": {
            "namespace": "db", "name": "a", "uid": "uid-of-a",
            "labels": {"windlass.dev/enabled": "true", "vm.neon.tech/name": ""},
            "annotations": {"windlass.dev/bounds": BOUNDS},
        },
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "vm", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}],
            "volumes": [{"name": "windlass", "emptyDir": {}}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.7"},
    })
}

fn name() -> VmName {
    VmName { namespace: "db".to_owned(), name: "a".to_owned() }
}
