//! What the driver says of a machine, by the answers of a monitor that only talks.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_qemu::{Qemu, QemuDriver};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Promises, Resize, Resources, Seen, ShrinkCpu,
};
use windlass_testkit::qmp::{FakeMonitor, Reply};

#[tokio::test]
async fn a_vm_is_seen_as_the_hypervisor_has_it() {
    let monitor = FakeMonitor::new(|_, _| Reply::Usual);
    let qemu =
        Qemu { qmp: monitor.path().to_owned(), vcpu_removal: false, cpu_limit: None, limits: None };
    assert_eq!(qemu.place(), monitor.path().display().to_string());
    let (mut driver, _notices) = qemu.attach().await.unwrap();
    let seen = driver.see().await.unwrap();
    assert_eq!(seen.plugged, MilliCpu::from_cores(2));
    assert_eq!(
        seen.memory,
        MemorySeen {
            boot: Bytes::from_mib(256),
            requested: Bytes::from_mib(128),
            size: Bytes::from_mib(64),
        }
    );
    assert_eq!(
        driver.capabilities(),
        Capabilities {
            cpu_step: MilliCpu::from_cores(1),
            limit_step: None,
            memory_step: Bytes::from_mib(2),
            shrink_cpu: ShrinkCpu::Parking,
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: Resources::new(MilliCpu::from_cores(1), Bytes::from_mib(256)),
            max: Resources::new(MilliCpu::from_cores(4), Bytes::from_mib(1280)),
        }
    );
    assert_eq!(monitor.changes(), []);
}

#[tokio::test]
async fn a_look_asks_five_questions_and_the_state_last() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let monitor = FakeMonitor::new(move |command, _| {
        notes.lock().unwrap().push(command.to_owned());
        Reply::Usual
    });
    let (mut driver, _notices) = attach(&monitor, false).await;
    asked.lock().unwrap().clear();
    driver.see().await.unwrap();
    let sizes = ["query-hotpluggable-cpus", "query-memory-size-summary", "query-memory-devices"];
    let state = ["query-status", "query-migrate"];
    assert_eq!(*asked.lock().unwrap(), [&sizes[..], &state[..]].concat());
}

/// A resize of two commands: by which machine, to what, and which commands these are.
struct Steps {
    machine: fn(&str) -> Reply,
    resize: Resize,
    commands: [(&'static str, &'static str); 2],
    /// Refusals by which the second is as good as done.
    done: &'static [(&'static str, &'static str)],
}

const STEPS: [Steps; 6] = [
    Steps {
        machine: |_| Reply::Usual,
        resize: Resize::Cpu(MilliCpu::from_cores(4)),
        commands: [("device_add", "windlass-cpu-2"), ("device_add", "windlass-cpu-3")],
        done: &[
            ("GenericError", "CPU[3] with APIC ID 3 exists"),
            ("GenericError", "Duplicate device ID 'windlass-cpu-3'"),
        ],
    },
    Steps {
        machine: with_vcpus_of_ours,
        resize: Resize::Cpu(MilliCpu::from_cores(1)),
        commands: [("device_del", "windlass-cpu-2"), ("device_del", "windlass-cpu-1")],
        done: &[
            ("DeviceNotFound", "Device 'windlass-cpu-1' not found"),
            ("GenericError", "Device windlass-cpu-1 is already in the process of unplug"),
        ],
    },
    Steps {
        machine: with_two_dimms,
        resize: Resize::Memory(Bytes::from_mib(256 + 4 * 128)),
        commands: [("object-add", "windlass-mem-2"), ("object-add", "windlass-mem-3")],
        done: &[(
            "GenericError",
            "attempt to add duplicate property 'windlass-mem-3' to object (type 'container')",
        )],
    },
    Steps {
        machine: with_two_dimms,
        resize: Resize::Memory(Bytes::from_mib(256 + 4 * 128)),
        commands: [("device_add", "windlass-dimm-2"), ("device_add", "windlass-dimm-3")],
        done: &[("GenericError", "Duplicate device ID 'windlass-dimm-3'")],
    },
    Steps {
        machine: with_two_dimms,
        resize: Resize::Memory(Bytes::from_mib(256)),
        commands: [("device_del", "windlass-dimm-1"), ("device_del", "windlass-dimm-0")],
        done: &[("DeviceNotFound", "Device 'windlass-dimm-0' not found")],
    },
    Steps {
        machine: with_two_virtio_devices,
        resize: Resize::Memory(Bytes::from_mib(256 + 512)),
        commands: [("qom-set", "/machine/peripheral/vm0"), ("qom-set", "device[1]")],
        done: &[],
    },
];

#[tokio::test]
async fn a_resize_is_refused_at_its_first_step_half_done_at_its_second_and_done_if_that_was() {
    const NO: (&str, &str) = ("GenericError", "out of luck");
    for Steps { machine, resize, commands: [first, second], done } in STEPS {
        let refused_at = async |(command, id): (&'static str, &'static str), (class, words)| {
            let monitor = FakeMonitor::new(move |asked, arguments| {
                let meant = asked == command && arguments.to_string().contains(id);
                if meant { Reply::Error(class, words) } else { machine(asked) }
            });
            let (mut driver, _notices) = attach(&monitor, true).await;
            (driver.resize(resize).await, monitor.changes())
        };
        let (outcome, _) = refused_at(first, NO).await;
        assert!(matches!(&outcome, Err(DriverError::Refused { .. })), "{first:?}: {outcome:?}");
        let (outcome, changes) = refused_at(second, NO).await;
        assert!(matches!(&outcome, Err(DriverError::Partly { .. })), "{second:?}: {outcome:?}");
        // Memory of the host that nobody gets is given back.
        let given_back = ("object-del".to_owned(), json!({"id": "windlass-mem-3"}));
        assert_eq!(changes.contains(&given_back), second.1 == "windlass-dimm-3", "{changes:?}");
        for words in done {
            let (outcome, changes) = refused_at(second, *words).await;
            assert!(outcome.is_ok(), "{words:?}: {outcome:?}");
            assert!(!changes.contains(&given_back), "{changes:?}");
        }
    }
}

#[tokio::test]
async fn memory_grows_to_all_that_there_is_of_devices_with_and_without_a_name() {
    let monitor = FakeMonitor::new(|command, arguments| match command {
        "qom-list" => Reply::Result(json!([
            {"name": "device[0]", "type": "child<virtio-net-pci>"},
            {"name": "device[2]", "type": "child<virtio-mem-pci>"},
            {"name": "device[1]", "type": "child<virtio-mem-pci>"},
        ])),
        "qom-get" if arguments["path"] == "/machine/peripheral-anon/device[1]" => {
            Reply::Result(json!("/objects/b"))
        }
        "qom-get" => Reply::Result(json!("/objects/c")),
        _ => with_two_virtio_devices(command),
    });
    let (mut driver, _notices) = attach(&monitor, false).await;
    let most = driver.capabilities().max.mem;
    driver.resize(Resize::Memory(most)).await.unwrap();
    let set = |path: &str| {
        let set = json!({"path": path, "property": "requested-size", "value": 256 << 20});
        ("qom-set".to_owned(), set)
    };
    assert_eq!(
        monitor.changes(),
        [set("/machine/peripheral/vm0"), set("/machine/peripheral-anon/device[1]")]
    );
}

#[tokio::test]
async fn a_machine_without_slots_has_one_size() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "query-hotpluggable-cpus" => Reply::Error("GenericError", "not supported"),
        "query-cpus-fast" => Reply::Result(json!([{}, {}])),
        "query-memory-devices" => Reply::Result(json!([])),
        "qom-get" => Reply::Result(json!({"slots": 0, "max-size": 4u64 << 30})),
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor, true).await;
    let Capabilities { min, max, shrink_memory, .. } = driver.capabilities();
    let only = Resources::new(MilliCpu::from_cores(2), Bytes::from_mib(256));
    assert_eq!((min.mem, max, shrink_memory), (only.mem, only, false));
    let Seen { plugged, memory, .. } = driver.see().await.unwrap();
    assert_eq!(plugged, only.cpu);
    assert_eq!(memory, MemorySeen { boot: only.mem, ..MemorySeen::default() });
    driver.resize(Resize::Memory(only.mem)).await.unwrap();
    driver.resize(Resize::Cpu(only.cpu)).await.unwrap();
    let more = Bytes::from_mib(384);
    assert!(matches!(driver.resize(Resize::Memory(more)).await, Err(DriverError::Refused { .. })));
    assert_eq!(monitor.changes(), []);
}

#[tokio::test]
async fn an_answer_to_an_earlier_command_is_nobody_s() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "query-hotpluggable-cpus" => Reply::After(b"{\"return\": {}, \"id\": 1}\r\n".to_vec()),
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor, false).await;
    assert_eq!(driver.see().await.unwrap().plugged, MilliCpu::from_cores(2));
}

async fn attach(monitor: &FakeMonitor, vcpu_removal: bool) -> (QemuDriver, mpsc::Receiver<Notice>) {
    let qemu = Qemu { qmp: monitor.path().to_owned(), vcpu_removal, cpu_limit: None, limits: None };
    qemu.attach().await.unwrap()
}

/// Three vCPUs of four, two of them ours, with KVM.
fn with_vcpus_of_ours(command: &str) -> Reply {
    let cpu = |core: u64, path: Value| {
        let props = json!({"socket-id": 0, "core-id": core, "thread-id": 0});
        let mut cpu = json!({"type": "host-x86_64-cpu", "vcpus-count": 1, "props": props});
        if !path.is_null() {
            cpu["qom-path"] = path;
        }
        cpu
    };
    match command {
        "query-kvm" => Reply::Result(json!({"enabled": true, "present": true})),
        "query-hotpluggable-cpus" => Reply::Result(json!([
            cpu(3, Value::Null),
            cpu(2, json!("/machine/peripheral/windlass-cpu-2")),
            cpu(1, json!("/machine/peripheral/windlass-cpu-1")),
            cpu(0, json!("/machine/unattached/device[0]")),
        ])),
        _ => Reply::Usual,
    }
}

/// Two DIMMs of ours, and two slots that are free.
fn with_two_dimms(command: &str) -> Reply {
    let dimm = |number: u64| {
        json!({"type": "dimm", "data": {"id": format!("windlass-dimm-{number}"),
            "memdev": format!("/objects/windlass-mem-{number}"), "size": 128 << 20}})
    };
    match command {
        "query-memory-devices" => Reply::Result(json!([dimm(0), dimm(1)])),
        "query-memdev" => Reply::Result(json!([])),
        "qom-get" => Reply::Result(json!({"slots": 4, "max-size": 1u64 << 30})),
        _ => Reply::Usual,
    }
}

/// Two virtio-mem devices of 256 MiB, one of them without a name, of which nothing is used.
fn with_two_virtio_devices(command: &str) -> Reply {
    let device = |id: &str, memdev: &str| {
        json!({"type": "virtio-mem", "data": {"id": id, "memdev": memdev, "block-size": 2 << 20,
            "size": 0, "requested-size": 0, "max-size": 256 << 20}})
    };
    match command {
        "query-memory-devices" => {
            Reply::Result(json!([device("vm0", "/objects/a"), device("", "/objects/b")]))
        }
        "qom-list" => {
            Reply::Result(json!([{"name": "device[1]", "type": "child<virtio-mem-pci>"}]))
        }
        "qom-get" => Reply::Result(json!("/objects/b")),
        _ => Reply::Usual,
    }
}
