//! Which VMs the pods of a node and their objects declare.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_agent_core::Vm;
use windlass_agent_core::declared::{Declared, INFORMANT_PORT, Step, Terms};
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_object::Machine;
use windlass_protocol::{Bytes, LoadWindow, MilliCpu, Resources, Usual, VmName};

#[test]
fn a_vm_is_declared_once_its_pod_and_its_object_are_known() {
    for pod_first in [true, false] {
        let mut node = Node::new();
        let (pod, machine) = (pod("a-1", "a"), machine("a", "a-1"));
        let steps = if pod_first {
            assert_eq!(node.pod(&pod), []);
            node.object(machine)
        } else {
            assert_eq!(node.object(machine), []);
            node.pod(&pod)
        };
        let vm = managed(&steps);
        assert_eq!(vm.info.name, name("a-1"), "a VM is the pod that runs it");
        assert_eq!((vm.info.bounds.min, vm.info.bounds.max), (size(250, 1), size(4000, 8)));
        assert_eq!(vm.info.memory_slot, Bytes::from_mib(1024));
        assert_eq!(vm.guest.informant, ([10, 0, 0, 7], INFORMANT_PORT).into());
        assert_eq!(vm.guest.advertise, Some([10, 0, 0, 1].into()));
        assert_eq!(node.pod(&pod), [], "nothing new");
    }
}

#[test]
fn what_annotations_say_counts_before_what_the_spec_says() {
    let mut node = Node::new();
    node.pod(&pod("a-1", "a"));
    let bounds = r#"{"min":{"cpu":1,"mem":"2Gi"},"max":{"cpu":2,"mem":"4Gi"}}"#;
    let mut machine = machine("a", "a-1");
    machine["metadata"]["annotations"] = json!({"autoscaling.neon.tech/bounds": bounds});
    let vm = managed(&node.object(machine.clone()));
    assert_eq!((vm.info.bounds.min, vm.info.bounds.max), (size(1000, 2), size(2000, 4)));
    assert_eq!(vm.info.load_window, LoadWindow::OneMinute, "the reference's annotations alone");
    assert!(vm.info.scale_down.cpu.is_zero());
    machine["metadata"]["annotations"]["windlass.dev/priority"] = json!("7");
    assert_eq!(managed(&node.object(machine)).info.priority, 7);
}

#[test]
fn an_invalid_annotation_is_told_once_and_its_last_valid_value_counts() {
    let mut node = Node::new();
    node.pod(&pod("a-1", "a"));
    let with = |priority: &str| {
        let mut machine = machine("a", "a-1");
        machine["metadata"]["annotations"] = json!({"windlass.dev/priority": priority});
        machine
    };
    assert_eq!(managed(&node.object(with("7"))).info.priority, 7);
    let steps = node.object(with("high"));
    let [Step::Complain { vm, object, problems }] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!((vm, object, problems.len()), (&name("a-1"), &name("a"), 1));
    assert!(problems[0].to_string().contains("windlass.dev/priority"), "{}", problems[0]);
    assert_eq!(node.object(with("high")), []);
    let steps = node.object(with("7"));
    let [Step::Complain { problems, .. }] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(problems, &[]);
}

/// An agent that has just started knows no earlier value, and the spec may allow far more.
#[test]
fn a_vm_whose_bounds_were_never_valid_is_not_scaled() {
    for name in ["windlass.dev/bounds", "autoscaling.neon.tech/bounds"] {
        let mut node = Node::new();
        node.pod(&pod("a-1", "a"));
        let mut machine = machine("a", "a-1");
        machine["metadata"]["annotations"] = json!({name: "nonsense"});
        let steps = node.object(machine.clone());
        let [Step::Complain { problems, .. }] = &steps[..] else { panic!("{steps:?}") };
        let last = problems.last().unwrap().to_string();
        assert!(last.starts_with(name) && last.ends_with("the vm keeps its size"), "{last}");
        machine["metadata"]["annotations"] = json!({});
        managed(&node.object(machine));
    }
}

/// A VM that was declared stays so while its object says what cannot be.
#[test]
fn an_object_that_is_not_valid_withdraws_nothing() {
    let mut node = Node::new();
    node.pod(&pod("a-1", "a"));
    managed(&node.object(machine("a", "a-1")));
    for (field, value) in [("memorySlotSize", json!("x")), ("cpus", json!({"min": -1}))] {
        let mut machine = machine("a", "a-1");
        machine["spec"]["guest"][field] = value;
        let steps = node.object(machine);
        let only_complains = |step: &Step| matches!(step, Step::Complain { .. });
        assert!(!steps.is_empty() && steps.iter().all(only_complains), "{field}: {steps:?}");
    }
    let mut without = machine("a", "a-1");
    without["status"]["podIP"] = json!(null);
    let steps = node.object(without);
    assert!(!steps.iter().any(|step| matches!(step, Step::Forget(_))), "{steps:?}");
}

#[test]
fn a_vm_is_declared_no_more_once_its_pod_is_gone_or_its_object_says_otherwise() {
    let gone = [Step::Forget(name("a-1"))];
    for (why, at, value) in [
        ("the label", "/metadata/labels", json!({"windlass.dev/enabled": "false"})),
        ("another pod", "/status/podName", json!("a-2")),
        ("no pod", "/status/podName", json!(null)),
        ("it has ended", "/status/phase", json!("Succeeded")),
        ("it begins anew", "/status/phase", json!("Pending")),
    ] {
        let mut node = Node::new();
        node.pod(&pod("a-1", "a"));
        managed(&node.object(machine("a", "a-1")));
        let mut machine = machine("a", "a-1");
        *machine.pointer_mut(at).unwrap() = value;
        assert_eq!(node.object(machine.clone()), gone, "{why}");
        assert_eq!(node.object(machine), [], "{why}: once");
    }
    let mut node = Node::new();
    node.pod(&pod("a-1", "a"));
    managed(&node.object(machine("a", "a-1")));
    assert_eq!(node.declared.pod_gone(&name("a-1"), "another pod of that name"), None);
    assert_eq!(node.declared.pod_gone(&name("a-1"), "uid of a-1"), Some(gone[0].clone()));
    managed(&node.pod(&pod("a-1", "a")));
    assert_eq!(node.pod(&ended("a-1", "a")), gone);
}

/// A VM that moves has two pods, and the object names the one that counts.
#[test]
fn a_vm_that_moves_here_is_declared_when_its_object_names_the_new_pod() {
    let mut node = Node::new();
    node.pod(&pod("a-2", "a"));
    let mut moving = machine("a", "a-1");
    moving["status"]["phase"] = json!("Migrating");
    assert_eq!(node.object(moving), []);
    assert_eq!(managed(&node.object(machine("a", "a-2"))).info.name, name("a-2"));
}

#[test]
fn a_list_withdraws_what_it_does_not_have() {
    let mut node = Node::new();
    for vm in ["a", "b"] {
        node.pod(&pod(&format!("{vm}-1"), vm));
        managed(&node.object(machine(vm, &format!("{vm}-1"))));
    }
    let steps = node.list(vec![pod("b-1", "b"), pod("c-1", "c")]);
    assert_eq!(steps, [Step::Forget(name("a-1"))]);
    assert_eq!(node.declared.unknown(|object| object.name == "b"), [(name("c"), "c-1".into())]);
    let mut another = pod("b-1", "b");
    another.uid = "another".to_owned();
    let steps = node.list(vec![another]);
    assert_eq!(steps[0], Step::Forget(name("b-1")), "a pod of the same name is another VM");
    managed(&steps);
}

#[test]
fn a_pod_that_is_no_vm_of_an_object_or_is_not_scaled_declares_nothing() {
    let mut node = Node::new();
    let pods = [
        json!({}),
        json!({"vm.neon.tech/name": "a"}),
        json!({"vm.neon.tech/name": "a", "windlass.dev/enabled": "false"}),
        // The pod is the VM.
        json!({"windlass.dev/enabled": "true"}),
    ];
    for labels in pods {
        assert_eq!(node.pod(&labelled("a-1", labels.clone())), [], "{labels}");
        assert_eq!(node.declared.unknown(|_| false), [], "{labels}");
    }
}

/// A node, and the objects that its agent knows.
struct Node {
    declared: Declared,
    machines: BTreeMap<VmName, Arc<Machine>>,
}

impl Node {
    fn new() -> Self {
        let terms = Terms { usual: Usual::default(), advertise: Some([10, 0, 0, 1].into()) };
        Self { declared: Declared::new(terms), machines: BTreeMap::new() }
    }

    fn pod(&mut self, pod: &Pod) -> Vec<Step> {
        self.declared.pod_seen(pod, |name| self.machines.get(name).cloned())
    }

    fn list(&mut self, pods: Vec<Pod>) -> Vec<Step> {
        self.declared.pods_listed(pods, |name| self.machines.get(name).cloned())
    }

    fn object(&mut self, machine: Value) -> Vec<Step> {
        let machine: Machine = serde_json::from_value(machine).unwrap();
        let steps = self.declared.object_seen(&machine);
        self.machines.insert(machine.name.clone(), Arc::new(machine));
        steps
    }
}

/// The VM that is to be managed.
fn managed(steps: &[Step]) -> Vm {
    match steps {
        [.., Step::Manage { vm, .. }] => vm.clone(),
        _ => panic!("{steps:?}"),
    }
}

fn machine(vm: &str, pod: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "db", "name": vm, "uid": format!("uid of {vm}"),
            "labels": {"autoscaling.neon.tech/enabled": "true"},
        },
        "spec": {"guest": {
            "cpus": {"min": "250m", "max": 4, "use": 1},
            "memorySlots": {"min": 1, "max": 8, "use": 2},
        }},
        "status": {
            "phase": "Running", "podName": pod, "podIP": "10.0.0.7", "node": "n",
            "cpus": 1, "memorySize": "2Gi",
        },
    })
}

fn pod(name: &str, vm: &str) -> Pod {
    labelled(name, json!({"vm.neon.tech/name": vm, "autoscaling.neon.tech/enabled": "true"}))
}

fn ended(name: &str, vm: &str) -> Pod {
    let mut object = object(name, json!({"vm.neon.tech/name": vm, "windlass.dev/enabled": "true"}));
    object["status"]["phase"] = json!("Failed");
    serde_json::from_value(object).unwrap()
}

fn labelled(name: &str, labels: Value) -> Pod {
    serde_json::from_value(object(name, labels)).unwrap()
}

fn object(name: &str, labels: Value) -> Value {
    json!({
        "metadata": {
            "namespace": "db", "name": name, "uid": format!("uid of {name}"), "labels": labels,
        },
        "spec": {"nodeName": "n", "containers": [{"name": "neonvm-runner"}]},
        "status": {"phase": "Running"},
    })
}

fn name(name: &str) -> VmName {
    VmName { namespace: "db".to_owned(), name: name.to_owned() }
}

fn size(milli: u64, gib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(1024 * gib) }
}
