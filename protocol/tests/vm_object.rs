//! The object of a VM, from the JSON of NeonVM's VirtualMachine.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use windlass_protocol::pod::Ceiling;
use windlass_protocol::vm_object::{Machine, MachinePhase, Sizes, VmObject};
use windlass_protocol::{Bounds, Bytes, MilliCpu, Resources, VmName};

#[test]
fn an_object_says_what_its_vm_has_and_which_pod_runs_it() {
    let object = read(json!({
        "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
        "metadata": {
            "namespace": "db", "name": "one", "uid": "u", "resourceVersion": "12",
            "annotations": {
                "windlass.dev/ceiling": r#"{"epoch":3,"write":2,"cpu":"2","memory":"4Gi"}"#,
            },
        },
        "spec": {"guest": {
            "cpus": {"min": 0.25, "max": "4", "use": "500m"},
            "memorySlotSize": "512Mi",
            "memorySlots": {"min": 1, "max": 8, "use": 2},
            "rootDisk": {"image": "vm"},
        }},
        "status": {
            "podName": "one-abcde", "cpus": 1, "memorySize": "512Mi", "phase": "Scaling",
        },
    }));
    assert_eq!(
        object,
        VmObject {
            name: VmName { namespace: "db".to_owned(), name: "one".to_owned() },
            uid: "u".to_owned(),
            revision: "12".to_owned(),
            pod: Some("one-abcde".to_owned()),
            has: size(1000, 1024),
            bounds: Some(Bounds { min: size(250, 512), max: size(4000, 4096) }),
            slot: Some(Bytes::from_mib(512)),
            ceiling: Some(Ceiling { epoch: 3, write: 2, size: size(2000, 4096) }),
            problems: Vec::new(),
        }
    );
}

#[test]
fn what_is_absent_is_nothing() {
    for rest in [
        json!({}),
        json!({"spec": {}, "status": {}}),
        json!({"spec": {"guest": {"cpus": {}, "memorySlots": null}}, "status": {"podName": ""}}),
        json!({"spec": null, "status": null}),
    ] {
        let object = read(with(rest));
        assert_eq!((object.pod, object.has, object.ceiling), (None, Resources::ZERO, None));
        assert_eq!(object.problems, []);
    }
}

#[test]
fn a_slot_has_a_gibibyte_where_none_is_said() {
    let guest = json!({"memorySlots": {"use": 3}});
    assert_eq!(read(with(json!({"spec": {"guest": guest}}))).has, size(0, 3072));
}

/// The agent of its node reads them alike.
#[test]
fn annotations_win_over_the_bounds_of_a_spec_field_by_field() {
    const OURS: &str = "windlass.dev/bounds";
    const THEIRS: &str = "autoscaling.neon.tech/bounds";
    let theirs = r#"{"min":{"cpu":2,"mem":"1Gi"},"max":{"cpu":3,"mem":"3Gi"}}"#;
    for (annotations, bounds) in [
        (json!(null), Some((size(1000, 512), size(4000, 4096)))),
        (json!({"windlass.dev/priority": "7"}), Some((size(1000, 512), size(4000, 4096)))),
        (json!({OURS: r#"{"max":{"cpu":2}}"#}), Some((size(1000, 512), size(2000, 4096)))),
        (
            json!({OURS: r#"{"min":{"mem":"1Gi"},"max":{"mem":"2Gi"}}"#}),
            Some((size(1000, 1024), size(4000, 2048))),
        ),
        (json!({THEIRS: theirs}), Some((size(2000, 1024), size(3000, 3072)))),
        (
            json!({OURS: r#"{"max":{"cpu":"3500m"}}"#, THEIRS: theirs}),
            Some((size(2000, 1024), size(3500, 3072))),
        ),
        // An agent keeps the last bounds that were valid, which nothing here tells.
        (json!({OURS: r#"{"max":{"cpu":"many"}}"#}), None),
        (json!({OURS: r#"{"max":{"cpu":0.5}}"#}), None),
    ] {
        let guest = json!({
            "cpus": {"min": 1, "max": 4}, "memorySlotSize": "512Mi",
            "memorySlots": {"min": 1, "max": 8},
        });
        let metadata = json!({"name": "one", "annotations": annotations});
        let object = read(json!({"metadata": metadata, "spec": {"guest": guest}}));
        let bounds = bounds.map(|(min, max)| Bounds { min, max });
        assert_eq!(object.bounds, bounds, "{annotations}");
    }
}

#[test]
fn bounds_of_a_spec_that_are_invalid_are_none() {
    for (guest, bounds) in [
        (json!({}), Some(Bounds { min: size(1000, 1024), max: size(1000, 1024) })),
        (
            json!({"cpus": {"min": 2}, "memorySlots": {"max": 3}}),
            Some(Bounds { min: size(2000, 1024), max: size(2000, 3072) }),
        ),
        (json!({"cpus": {"min": 2, "max": 1}}), None),
        (json!({"cpus": {"min": "few", "max": 1}}), None),
        (json!({"memorySlotSize": "small"}), None),
    ] {
        assert_eq!(read(with(json!({"spec": {"guest": guest}}))).bounds, bounds, "{guest}");
    }
}

/// The spec can be written by whoever may write the object; what QEMU was started with bounds what the VM gets.
#[test]
fn a_spec_asks_for_no_more_than_its_maximum() {
    let guest = json!({
        "cpus": {"max": 2, "use": 4096}, "memorySlots": {"max": 4, "use": 9_000_000_000_u64},
    });
    let object = read(with(json!({"spec": {"guest": guest}})));
    assert_eq!((object.has, object.problems.len()), (size(2000, 4096), 0));
}

#[test]
fn what_is_invalid_is_named_and_counts_as_the_largest() {
    let status = json!({"cpus": "many", "memorySize": "-1Gi"});
    let annotations = json!({"windlass.dev/ceiling": "{}"});
    let object = read(json!({
        "metadata": {"name": "one", "annotations": annotations}, "status": status,
    }));
    let problems: Vec<String> = object.problems.iter().map(ToString::to_string).collect();
    let fields = ["status.cpus", "status.memorySize", "windlass.dev/ceiling"];
    assert_eq!(problems.len(), fields.len(), "{problems:?}");
    for (problem, field) in problems.iter().zip(fields) {
        assert!(problem.contains(field), "{problem}");
    }
    assert_eq!(object.ceiling, None);
    assert_eq!(object.has.cpu.milli(), i64::MAX.unsigned_abs());
}

#[test]
fn an_object_without_a_name_is_an_error() {
    for metadata in [json!({}), json!({"name": ""}), json!(null)] {
        let error = serde_json::from_value::<VmObject>(json!({"metadata": metadata})).unwrap_err();
        assert!(error.to_string().contains("metadata.name"), "{error}");
    }
}

fn read(object: Value) -> VmObject {
    serde_json::from_value(object).unwrap()
}

/// An object with a name and this besides.
fn with(mut rest: Value) -> Value {
    rest["metadata"] = json!({"name": "one"});
    rest
}

fn size(milli: u64, mib: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
}

#[test]
fn a_machine_says_what_its_agent_needs() {
    let machine: Machine = serde_json::from_value(json!({
        "metadata": {
            "namespace": "db", "name": "one", "uid": "u", "resourceVersion": "12", "generation": 4,
            "labels": {"autoscaling.neon.tech/enabled": "true"},
            "annotations": {"windlass.dev/priority": "7"},
        },
        "spec": {"guest": {
            "cpus": {"min": 0.25, "max": "4", "use": "500m"},
            "memorySlotSize": "512Mi",
            "memorySlots": {"min": 1, "max": 8, "use": 2},
        }},
        "status": {
            "phase": "Scaling", "podName": "one-abcde", "podIP": "10.0.0.7", "node": "n",
            "cpus": "250m", "memorySize": "512Mi",
        },
    }))
    .unwrap();
    let sizes = Sizes { min: size(250, 512), max: size(4000, 4096), used: size(500, 1024) };
    assert_eq!(
        machine,
        Machine {
            name: VmName { namespace: "db".to_owned(), name: "one".to_owned() },
            uid: "u".to_owned(),
            revision: "12".to_owned(),
            generation: 4,
            is_terminating: false,
            is_enabled: true,
            annotations: [("windlass.dev/priority".to_owned(), "7".to_owned())].into(),
            phase: MachinePhase::Scaling,
            pod: Some("one-abcde".to_owned()),
            node: Some("n".to_owned()),
            address: Some("10.0.0.7".parse().unwrap()),
            slot: Bytes::from_mib(512),
            sizes,
            shows: size(250, 512),
            problems: Vec::new(),
        }
    );
}

/// As NeonVM's webhook does it.
#[test]
fn what_a_machine_leaves_out_is_its_minimum() {
    for (guest, sizes) in [
        (json!({}), [size(1000, 1024), size(1000, 1024), size(1000, 1024)]),
        (
            json!({"cpus": {"min": 2, "max": 3}, "memorySlots": {"min": 2, "use": 3}}),
            [size(2000, 2048), size(3000, 2048), size(2000, 3072)],
        ),
    ] {
        let machine = machine(with(json!({"spec": {"guest": guest}})));
        let [min, max, used] = sizes;
        assert_eq!(machine.sizes, Sizes { min, max, used }, "{guest}");
        assert_eq!((machine.phase, machine.pod, machine.address), Default::default());
    }
}

#[test]
fn our_label_of_a_machine_wins() {
    for (labels, is_enabled) in [
        (json!({}), false),
        (json!({"windlass.dev/enabled": "true"}), true),
        (json!({"windlass.dev/enabled": "yes"}), false),
        (json!({"autoscaling.neon.tech/enabled": "true"}), true),
        (json!({"windlass.dev/enabled": "false", "autoscaling.neon.tech/enabled": "true"}), false),
    ] {
        let machine = machine(json!({"metadata": {"name": "one", "labels": labels}}));
        assert_eq!(machine.is_enabled, is_enabled, "{labels}");
    }
}

#[test]
fn a_machine_names_each_field_that_is_invalid() {
    let guest = json!({"cpus": {"min": "x", "max": -1}, "memorySlots": {"max": "9e30"}});
    let status = json!({"podIP": "here", "cpus": "many"});
    let machine = machine(with(json!({"spec": {"guest": guest}, "status": status})));
    let problems: Vec<String> = machine.problems.iter().map(ToString::to_string).collect();
    let fields = [
        "spec.guest.cpus.min",
        "spec.guest.cpus.max",
        "spec.guest.memorySlots.max",
        "status.cpus",
        "status.podIP",
    ];
    assert_eq!(problems.len(), fields.len(), "{problems:?}");
    for (problem, field) in problems.iter().zip(fields) {
        assert!(problem.starts_with(field), "{problem}");
    }
}

#[test]
fn the_phases_of_a_machine_are_those_of_neonvm() {
    for (word, phase, executes) in [
        ("", MachinePhase::Unknown, false),
        ("Pending", MachinePhase::Pending, false),
        ("Running", MachinePhase::Running, true),
        ("Scaling", MachinePhase::Scaling, true),
        ("PreMigrating", MachinePhase::PreMigrating, true),
        ("Migrating", MachinePhase::Migrating, true),
        ("Succeeded", MachinePhase::Ended, false),
        ("Failed", MachinePhase::Ended, false),
        ("Resting", MachinePhase::Unknown, false),
    ] {
        let machine = machine(with(json!({"status": {"phase": word}})));
        assert_eq!((machine.phase, machine.phase.executes()), (phase, executes), "{word}");
    }
}

fn machine(object: Value) -> Machine {
    serde_json::from_value(object).unwrap()
}
