//! Pods and nodes as the API server writes them.
//!
//! The vectors are pods with what Kubernetes' own `PodRequests` of `k8s.io/component-helpers` v0.35.4 makes
//! of them, with the status' resources on both levels: a name, thousandths of a vCPU, bytes, the pod.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use windlass_protocol::node::{Effect, Node, Taint};
use windlass_protocol::pod::{Allocation, Ceiling, Phase, Pod, PodVm};
use windlass_protocol::{Axis, Bounds, Bytes, MilliCpu, Resources, VmName, VmRecord};

/// The largest amount that a quantity holds.
const LARGEST: u64 = i64::MAX.unsigned_abs();

#[test]
fn requests_are_those_of_the_scheduler() {
    for line in include_str!("vectors/pod-requests.tsv").lines() {
        let [name, milli, bytes, text] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let pod: Pod = serde_json::from_str(text).unwrap();
        let requests = size(milli.parse().unwrap(), bytes.parse().unwrap());
        assert_eq!(pod.requests, requests, "{name}");
    }
}

#[test]
fn a_pod_is_read_from_what_the_api_server_writes() {
    let pod = read(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "tenants", "name": "web-0", "uid": "u1", "resourceVersion": "7",
            "deletionTimestamp": "2026-01-31T08:00:00Z", "labels": {"app": "web"},
        },
        "spec": {
            "nodeName": "node-a", "schedulerName": "default-scheduler",
            "containers": [{"name": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }));
    let expected = Pod {
        name: VmName { namespace: "tenants".into(), name: "web-0".into() },
        uid: "u1".into(),
        revision: "7".into(),
        node: Some("node-a".into()),
        scheduler: "default-scheduler".into(),
        phase: Phase::Running,
        is_terminating: true,
        requests: size(1000, 1 << 30),
        vm: None,
        is_headroom: false,
        allocation: None,
        problems: Vec::new(),
    };
    assert_eq!(pod, expected);
}

#[test]
fn a_pod_counts_from_its_binding_until_it_ended() {
    for (node, phase, counts) in [
        (json!("node-a"), json!("Pending"), true),
        (json!("node-a"), json!("Running"), true),
        (json!("node-a"), json!("Unknown"), true),
        (json!("node-a"), json!("Paused"), true),
        (json!("node-a"), json!(null), true),
        (json!("node-a"), json!("Succeeded"), false),
        (json!("node-a"), json!("Failed"), false),
        (json!(""), json!("Pending"), false),
        (json!(null), json!("Pending"), false),
    ] {
        for deleted in [json!(null), json!("2026-01-31T08:00:00Z")] {
            let pod = read(&json!({
                "metadata": {"name": "a", "deletionTimestamp": deleted},
                "spec": {"nodeName": node}, "status": {"phase": phase},
            }));
            assert_eq!(pod.counts(), counts, "{node} {phase} {deleted}");
        }
    }
}

/// 150,000 pods take 400 MiB if each takes 2,796 bytes; this one takes about 0.7 KiB.
#[test]
fn a_pod_is_small() {
    let text = include_str!("../golden/extender-v1-args-names.json");
    let args: Value = serde_json::from_str(text).unwrap();
    let pod =
        Pod { node: Some("ip-10-0-132-87.eu-central-1.internal".into()), ..read(&args["Pod"]) };
    let object = &pod.vm.as_ref().unwrap().object;
    let texts = [
        &pod.name.namespace,
        &pod.name.name,
        &pod.uid,
        &pod.revision,
        pod.node.as_ref().unwrap(),
        &pod.scheduler,
        &object.namespace,
        &object.name,
    ];
    // An allocation costs 16 bytes beyond its length, at most 15 of them for alignment.
    let heap: usize = texts.map(|text| text.capacity() + 31).iter().sum();
    let heap = heap + size_of::<Allocation>() + 31;
    let whole = size_of::<Pod>() + heap;
    assert!(whole < 1024, "{} and {heap} bytes", size_of::<Pod>());
}

#[test]
fn null_and_absent_are_alike() {
    let bare = read(&json!({"metadata": {"name": "a"}}));
    let null = read(&json!({
        "metadata": {
            "name": "a", "namespace": null, "uid": null, "resourceVersion": null,
            "deletionTimestamp": null, "labels": null, "annotations": null,
        },
        "spec": {
            "nodeName": null, "schedulerName": null, "containers": null, "initContainers": null,
            "resources": null, "overhead": null,
        },
        "status": {
            "phase": null, "conditions": null, "containerStatuses": null, "resources": null,
            "initContainerStatuses": null, "allocatedResources": null,
        },
    }));
    assert_eq!(bare, null);
    assert_eq!((bare.phase, bare.node, bare.requests), (Phase::Unknown, None, Resources::ZERO));
}

#[test]
fn a_pod_without_a_name_is_an_error() {
    for pod in [json!({}), json!({"metadata": {"name": ""}}), json!({"metadata": {"name": null}})] {
        let error = serde_json::from_value::<Pod>(pod).unwrap_err().to_string();
        assert_eq!(error, "metadata.name: is missing");
    }
}

/// A tenant can make such a pod: it must fit nowhere, and must not end the list of all pods.
#[test]
fn an_invalid_request_counts_as_the_largest_and_is_a_problem() {
    let container = |amounts: Value| json!([{"name": "a", "resources": {"requests": amounts}}]);
    let status =
        |amounts: Value| json!([{"name": "a", "resources": {}, "allocatedResources": amounts}]);
    let form = "must be a quantity, as 250m, 0.5, 2 or 512Mi; the largest amount counts";
    let negative = "must be a quantity of zero or more; the largest amount counts";
    let large = "must be a quantity that fits into 63 bits; the largest amount counts";
    for (pod, axis, problem) in [
        (
            json!({"spec": {"containers": container(json!({"cpu": "10E"}))}}),
            Axis::Cpu,
            format!("spec.containers[0].resources.requests.cpu = 10E: {large}"),
        ),
        (
            json!({"spec": {"containers": container(json!({"cpu": "1x"}))}}),
            Axis::Cpu,
            format!("spec.containers[0].resources.requests.cpu = 1x: {form}"),
        ),
        (
            json!({"spec": {"initContainers": container(json!({"memory": -1}))}}),
            Axis::Memory,
            format!("spec.initContainers[0].resources.requests.memory = -1: {negative}"),
        ),
        (
            json!({"spec": {"overhead": {"memory": "9Ei"}}}),
            Axis::Memory,
            format!("spec.overhead.memory = 9Ei: {large}"),
        ),
        (
            json!({"spec": {"resources": {"requests": {"cpu": ""}}}}),
            Axis::Cpu,
            format!("spec.resources.requests.cpu: {form}"),
        ),
        (
            json!({
                "spec": {"containers": [{"name": "a"}]},
                "status": {"containerStatuses": status(json!({"cpu": "many"}))},
            }),
            Axis::Cpu,
            format!("status.containerStatuses[0].allocatedResources.cpu = many: {form}"),
        ),
    ] {
        let mut pod = pod;
        pod["metadata"] = json!({"name": "a"});
        let pod = read(&pod);
        let of = |axis: Axis| axis.of(pod.requests);
        let (this, other) = match axis {
            Axis::Cpu => (of(Axis::Cpu), of(Axis::Memory)),
            Axis::Memory => (of(Axis::Memory), of(Axis::Cpu)),
        };
        assert_eq!((this, other), (LARGEST, 0), "{problem}");
        assert_eq!(pod.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [problem]);
    }
}

#[test]
fn requests_beyond_the_largest_do_not_wrap_around() {
    let huge = json!({"requests": {"cpu": "10E", "memory": "10E"}});
    let one = |name: &str| json!({"name": name, "resources": huge});
    let pod = read(&json!({
        "metadata": {"name": "a", "labels": {"windlass.dev/enabled": "true"}},
        "spec": {"containers": [one("a"), one("b"), one("c")], "overhead": {"cpu": "10E"}},
    }));
    assert_eq!(pod.requests, size(u64::MAX, u64::MAX));
    assert_eq!(pod.problems.len(), 7);
    assert_eq!(pod.vm.unwrap().bounds.max, pod.requests);
}

#[test]
fn labels_say_which_pods_are_vms() {
    for (labels, object) in [
        (json!({}), None),
        (json!({"windlass.dev/enabled": "true"}), Some("pod-1")),
        (json!({"windlass.dev/enabled": "yes"}), None),
        (json!({"autoscaling.neon.tech/enabled": "true"}), Some("pod-1")),
        (json!({"autoscaling.neon.tech/enabled": "true", "windlass.dev/enabled": "false"}), None),
        (json!({"vm.neon.tech/name": "db1"}), Some("db1")),
        (json!({"vm.neon.tech/name": "db1", "windlass.dev/enabled": "false"}), Some("db1")),
        (json!({"vm.neon.tech/name": "", "windlass.dev/enabled": "true"}), Some("pod-1")),
    ] {
        let pod = read(&json!({
            "metadata": {"namespace": "tenants", "name": "pod-1", "labels": labels},
        }));
        let name = |name: &str| VmName { namespace: "tenants".into(), name: name.into() };
        assert_eq!(pod.vm.map(|vm| vm.object), object.map(name), "{labels}");
    }
}

#[test]
fn annotations_describe_the_vm() {
    let vm = vm(&json!({
        "windlass.dev/bounds": r#"{"max":{"cpu":8}}"#,
        "windlass.dev/priority": "7",
        "windlass.dev/ceiling": r#"{"epoch":3,"cpu":"2","memory":"4Gi"}"#,
        "autoscaling.neon.tech/bounds":
            r#"{"min":{"cpu":1,"mem":"1Gi"},"max":{"cpu":4,"mem":"8Gi"}}"#,
    }));
    let bounds = Bounds { min: size(1000, 1 << 30), max: size(8000, 8 << 30) };
    let ceiling = Ceiling { epoch: 3, write: 0, size: size(2000, 4 << 30) };
    let slot = Bytes::from_mib(128);
    assert_eq!((vm.bounds, vm.priority, vm.memory_slot), (bounds, 7, slot));
    assert_eq!((vm.ceiling, problems(&vm)), (Some(ceiling), vec![]));
    assert_eq!(vm.record(), VmRecord::listed(7, bounds, slot));
}

/// NeonVM before `vm.neon.tech/resources` tells its pods nothing of the object's bounds: that is no fault of a person.
#[test]
fn bounds_that_the_object_of_a_vm_says_are_not_missing() {
    let of_object = |bounds: Option<&str>| {
        let annotations = bounds.map(|bounds| json!({"windlass.dev/bounds": bounds}));
        let labels = json!({"vm.neon.tech/name": "db1"});
        let metadata = json!({"name": "a", "labels": labels, "annotations": annotations});
        let pod = read(&json!({"metadata": metadata, "spec": {"containers": [{"name": "a"}]}}));
        problems(&pod.vm.unwrap())
    };
    for bounds in [None, Some(r#"{"max":{"cpu":2}}"#)] {
        assert_eq!(of_object(bounds), [""; 0]);
    }
    let words = of_object(Some(r#"{"min":{"cpu":4},"max":{"cpu":2}}"#));
    assert!(words[0].contains("below the minimum of 4"));
}

#[test]
fn without_valid_bounds_the_requests_count() {
    let fallback =
        "windlass.dev/bounds: the pod's requests count, as the minimum and as the maximum";
    let missing = "windlass.dev/bounds: is missing: neither windlass.dev/bounds nor \
                   autoscaling.neon.tech/bounds says it";
    for (bounds, why) in [
        (None, missing),
        (Some("{"), "windlass.dev/bounds = {: must be JSON, but at byte 1: "),
        (Some(r#"{"min":{"cpu":"x"}}"#), "windlass.dev/bounds.min.cpu = \"x\": must be "),
        (
            Some(r#"{"min":{"cpu":2,"mem":"1Gi"},"max":{"cpu":1,"mem":"1Gi"}}"#),
            "windlass.dev/bounds.max.cpu = 1: is below the minimum of 2",
        ),
    ] {
        let mut annotations = json!({"windlass.dev/priority": "-3"});
        if let Some(bounds) = bounds {
            annotations["windlass.dev/bounds"] = json!(bounds);
        }
        let vm = vm(&annotations);
        let requests = size(1000, 1 << 30);
        assert_eq!(vm.bounds, Bounds { min: requests, max: requests });
        assert_eq!(vm.priority, -3);
        let problems = problems(&vm);
        assert!(problems[0].starts_with(why), "{problems:?}");
        assert_eq!(problems.last().map(String::as_str), Some(fallback));
    }
}

#[test]
fn a_neonvm_says_its_slot_and_its_own_bounds() {
    let sizes = |slot: &str, max: u32| {
        let cpus = json!({"min": "250m", "max": 4, "use": 1});
        let slots = json!({"min": 1, "max": max, "use": 2});
        json!({"cpus": cpus, "memorySlots": slots, "memorySlotSize": slot}).to_string()
    };
    let with = |text: String| vm(&json!({"vm.neon.tech/resources": text}));
    let good = with(sizes("1Gi", 8));
    let bounds = Bounds { min: size(250, 1 << 30), max: size(4000, 8 << 30) };
    assert_eq!((good.bounds, good.memory_slot), (bounds, Bytes::from_gib(1)));
    assert_eq!(problems(&good), Vec::<String>::new());
    for (text, why) in [
        (sizes("1Ki", 8), "vm.neon.tech/resources.memorySlotSize = 1KiB: must be "),
        (sizes("1Gi", 0), "vm.neon.tech/resources.memorySlots.max = "),
        ("[]".to_owned(), "vm.neon.tech/resources = a list: must be an object"),
        ("{}".to_owned(), "vm.neon.tech/resources.memorySlotSize = 0B: must be "),
    ] {
        let vm = with(text);
        assert_eq!(vm.memory_slot, Bytes::from_mib(128));
        assert!(problems(&vm)[0].starts_with(why), "{:?}", problems(&vm));
    }
}

#[test]
fn an_unreadable_ceiling_is_a_problem() {
    for (text, why) in [
        (
            "",
            "windlass.dev/ceiling: must be JSON, but at byte 0: the body ends before the value does",
        ),
        ("{}", "windlass.dev/ceiling.epoch: is missing"),
        (r#"{"epoch":1,"cpu":"2"}"#, "windlass.dev/ceiling.memory: is missing"),
        (r#"{"epoch":1,"cpu":null,"memory":"4Gi"}"#, "windlass.dev/ceiling.cpu: is missing"),
        (
            r#"{"epoch":-1,"cpu":"2","memory":"4Gi"}"#,
            "windlass.dev/ceiling.epoch = -1: must be a whole number from 0 to 18446744073709551615",
        ),
        (
            r#"{"epoch":1,"cpu":"2","memory":"4GiB"}"#,
            "windlass.dev/ceiling.memory = \"4GiB\": must be a quantity, as 250m, 0.5, 2 or 512Mi",
        ),
        (
            r#"{"epoch":1,"write":18446744073709551615,"cpu":"2","memory":"4Gi"}"#,
            "windlass.dev/ceiling.write = 18446744073709551615: must be a whole number from 0 to 9223372036854775807",
        ),
    ] {
        let vm = vm(&json!({
            "windlass.dev/bounds": r#"{"min":{"cpu":1,"mem":"1Gi"},"max":{"cpu":4,"mem":"8Gi"}}"#,
            "windlass.dev/ceiling": text,
        }));
        assert_eq!((vm.ceiling, problems(&vm)), (None, vec![why.to_owned()]));
    }
    let later = r#"{"epoch":1,"cpu":"2","memory":"4Gi","disk":"9Gi"}"#;
    let size = size(2000, 4 << 30);
    assert_eq!(Ceiling::decode(later), Ok(Ceiling { epoch: 1, write: 0, size }));
}

#[test]
fn a_ceiling_is_written_as_the_annotation_says() {
    let ceiling = Ceiling { epoch: 1, write: 0, size: size(2000, 4 << 30) };
    assert_eq!(ceiling.encode(), r#"{"epoch":1,"cpu":"2","memory":"4Gi"}"#);
    let numbered = Ceiling { write: 2, ..ceiling };
    assert_eq!(numbered.encode(), r#"{"epoch":1,"write":2,"cpu":"2","memory":"4Gi"}"#);
}

#[test]
fn a_node_is_read_from_what_the_api_server_writes() {
    let node: Node = serde_json::from_value(json!({
        "metadata": {
            "name": "node-a", "uid": "n1", "resourceVersion": "9", "labels": {"zone": "a"},
        },
        "spec": {
            "unschedulable": true,
            "taints": [
                {"key": "vms", "value": "only", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026"},
                {"key": "old", "value": null, "effect": "PreferNoSchedule"},
                {"key": "new", "effect": "Later"},
            ],
        },
        "status": {"capacity": {"cpu": "16"}, "allocatable": {"cpu": "15890m", "memory": "62Gi"}, "conditions": [
            {"type": "DiskPressure", "status": "False"},
            {"type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory"},
        ]},
    }))
    .unwrap();
    let taint = |key: &str, value: &str, effect| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect,
    };
    let expected = Node {
        name: "node-a".into(),
        uid: "n1".into(),
        revision: "9".into(),
        allocatable: size(15_890, 62 << 30),
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        is_unschedulable: true,
        has_memory_pressure: true,
        taints: vec![
            taint("vms", "only", Effect::NoSchedule),
            taint("node.kubernetes.io/unreachable", "", Effect::NoExecute),
            taint("old", "", Effect::PreferNoSchedule),
            taint("new", "", Effect::Unknown),
        ],
        problems: Vec::new(),
    };
    assert_eq!(node, expected);
}

#[test]
fn a_node_that_reports_nothing_has_no_room() {
    for text in [
        r#"{"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a","labels":null},"spec":null,"status":{"allocatable":null}}"#,
        r#"{"metadata":{"name":"a"},"status":{"conditions":[{"type":"MemoryPressure","status":"Unknown"}]}}"#,
        r#"{"metadata":{"name":"a"},"status":{"conditions":[{"status":"True"}]}}"#,
        r#"{"metadata":{"name":"a"},"spec":{"taints":null},"status":{"allocatable":{"cpu":null}}}"#,
    ] {
        let node: Node = serde_json::from_str(text).unwrap();
        assert_eq!((node.allocatable, node.is_unschedulable), (Resources::ZERO, false));
        assert!(!node.has_memory_pressure);
        assert_eq!((node.labels.len(), node.taints.len()), (0, 0));
    }
    let nameless = serde_json::from_str::<Node>(r#"{"spec":{}}"#).unwrap_err().to_string();
    assert!(nameless.starts_with("metadata.name: is missing"), "{nameless}");
}

/// One node's report must not end the list of all nodes.
#[test]
fn an_invalid_amount_of_a_node_is_no_room_and_a_problem() {
    let form = "must be a quantity, as 250m, 0.5, 2 or 512Mi; zero counts";
    for (cpu, counted, problem) in [
        ("x", 0, form),
        ("-1", 0, "must be a quantity of zero or more; zero counts"),
        ("10E", LARGEST, "must be a quantity that fits into 63 bits; the largest amount counts"),
    ] {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": cpu, "memory": "1Gi"}},
        }))
        .unwrap();
        assert_eq!(node.allocatable, size(counted, 1 << 30));
        let problems: Vec<String> = node.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, [format!("status.allocatable.cpu = {cpu}: {problem}")]);
    }
}

#[test]
fn a_vm_may_be_moved_if_its_object_says_so_and_controls_the_pod() {
    let owner = |kind: &str, group: &str, controller: bool| json!({"apiVersion": group, "kind": kind, "name": "db1", "uid": "u1", "controller": controller});
    let (vm, neon) = ("VirtualMachine", "vm.neon.tech/v1");
    let uid = Some("u1");
    for (labels, owners, controller, may_move) in [
        (json!({}), json!(null), None, false),
        (json!({"windlass.dev/may-move": "true"}), json!([owner(vm, neon, true)]), uid, true),
        (json!({"windlass.dev/may-move": "yes"}), json!([owner(vm, neon, true)]), uid, false),
        (json!({"autoscaling.neon.tech/auto-migration-enabled": "true"}), json!([]), None, true),
        (
            json!({
                "autoscaling.neon.tech/auto-migration-enabled": "true",
                "windlass.dev/may-move": "false",
            }),
            json!([owner(vm, neon, false), owner("ReplicaSet", "apps/v1", true)]),
            None,
            false,
        ),
        (json!({}), json!([owner("VirtualMachineMigration", neon, true)]), None, false),
        (json!({}), json!([owner(vm, "kubevirt.io/v1", true)]), None, false),
    ] {
        let mut all = json!({"vm.neon.tech/name": "db1"});
        all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        let pod = json!({"metadata": {"name": "a", "labels": all, "ownerReferences": owners}});
        let vm = read(&pod).vm.unwrap();
        assert_eq!((vm.controller.as_deref(), vm.may_move), (controller, may_move), "{pod}");
    }
}

#[test]
fn what_the_plugin_writes_into_pods_is_no_problem() {
    let bounds = r#"{"min":{"cpu":1,"mem":"1Gi"},"max":{"cpu":2,"mem":"2Gi"}}"#;
    let annotations = json!({
        "windlass.dev/bounds": bounds,
        "windlass.dev/room-came-free": "n1 at 5ms",
        "windlass.dev/binding-settled": "4711",
    });
    assert_eq!(problems(&vm(&annotations)), Vec::<String>::new());
}

fn read(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).unwrap()
}

/// The VM of a pod with these annotations, which requests 1 vCPU and 1 GiB.
fn vm(annotations: &Value) -> PodVm {
    let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
    let pod = read(&json!({
        "metadata": {
            "name": "a", "labels": {"windlass.dev/enabled": "true"}, "annotations": annotations,
        },
        "spec": {"containers": [{"name": "a", "resources": requests}]},
    }));
    *pod.vm.unwrap()
}

fn problems(vm: &PodVm) -> Vec<String> {
    vm.problems.iter().map(ToString::to_string).collect()
}

fn size(milli: u64, bytes: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_bytes(bytes) }
}
