//! The driver against a monitor that speaks QMP and does as it is told: well and badly.

use super::*;
use serde_json::json;
use std::time::Duration;
use windlass_protocol::{Bytes, RunState};
use windlass_testkit::qmp::{FakeMonitor, GREETING, Reply};
use windlass_testkit::wait::until_async;
use windlass_testkit::{Folder, Process};

/// What is waited for in vain here; nothing that happens takes long.
const SHORT: Limits =
    Limits { greeting: Duration::from_millis(300), answer: Duration::from_millis(300) };
const LONG: Limits = Limits { greeting: Duration::from_secs(60), answer: Duration::from_secs(60) };

#[tokio::test]
async fn a_resize_asks_for_the_whole_size() {
    let monitor = FakeMonitor::new(|_, _| Reply::Usual);
    let (mut driver, _notices) = attach(&monitor).await;
    driver.resize(Resize::Cpu(MilliCpu::from_cores(3))).await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    let add = json!({"socket-id": 0, "core-id": 2, "thread-id": 0, "node-id": 0,
        "driver": "max-x86_64-cpu", "id": "windlass-cpu-2"});
    let set = json!({"path": "/machine/peripheral/vm0", "property": "requested-size",
        "value": 256 << 20});
    assert_eq!(monitor.changes(), [("device_add".to_owned(), add), ("qom-set".to_owned(), set)]);
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_asked() {
    let monitor = FakeMonitor::new(|_, _| Reply::Usual);
    let (mut driver, _notices) = attach(&monitor).await;
    for (resize, words) in [
        (Resize::Cpu(MilliCpu::from_milli(2500)), "2.5 is no whole number"),
        (Resize::Cpu(MilliCpu::from_cores(5)), "has places for 4"),
        (Resize::Cpu(MilliCpu::from_cores(1)), "parked by the guest"),
        (Resize::Memory(Bytes::from_mib(255)), "less than the 256MiB"),
        (Resize::Memory(Bytes::from_mib(257)), "no multiple of 2MiB"),
        (Resize::Memory(Bytes::from_gib(2)), "more than the 1.25GiB"),
    ] {
        let error = driver.resize(resize).await.unwrap_err();
        assert!(matches!(error, DriverError::Refused { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(monitor.changes(), []);
}

#[tokio::test]
async fn a_refusal_is_in_the_words_of_the_hypervisor() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "qom-set" => Reply::Error("GenericError", "'requested-size' cannot exceed"),
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor).await;
    let error = driver.resize(Resize::Memory(Bytes::from_gib(1))).await.unwrap_err();
    assert_eq!(error.to_string(), "resize of memory refused: 'requested-size' cannot exceed");
    assert!(!error.may_have_happened());
    driver.see().await.unwrap();
}

#[tokio::test]
async fn a_vcpu_that_came_in_between_is_no_error_and_a_refused_second_one_is_half_the_way() {
    let monitor = FakeMonitor::new(|command, arguments| match (command, &arguments["core-id"]) {
        ("device_add", core) if core == 2 => {
            Reply::Error("GenericError", "CPU[2] with APIC ID 2 exists")
        }
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor).await;
    driver.resize(Resize::Cpu(MilliCpu::from_cores(4))).await.unwrap();
    assert_eq!(monitor.changes().len(), 2);

    let monitor = FakeMonitor::new(|command, arguments| match (command, &arguments["core-id"]) {
        ("device_add", core) if core == 3 => Reply::Error("GenericError", "out of threads"),
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor).await;
    let error = driver.resize(Resize::Cpu(MilliCpu::from_cores(4))).await.unwrap_err();
    assert!(matches!(error, DriverError::Partly { .. }), "{error}");
}

#[tokio::test]
async fn removal_needs_kvm_and_the_word_of_the_operator() {
    for (enabled, vcpu_removal, shrink) in [
        (true, true, ShrinkCpu::Removal),
        (true, false, ShrinkCpu::Parking),
        (false, true, ShrinkCpu::Parking),
    ] {
        let monitor = FakeMonitor::new(move |command, _| match command {
            "query-kvm" => Reply::Result(json!({"enabled": enabled, "present": true})),
            "query-hotpluggable-cpus" => with_one_vcpu_of_ours(),
            _ => Reply::Usual,
        });
        let qemu =
            Qemu { qmp: monitor.path().to_owned(), vcpu_removal, cpu_limit: None, limits: None };
        let (mut driver, _notices) = qemu.attach_within(LONG).await.unwrap();
        assert_eq!(driver.capabilities().shrink_cpu, shrink);
        let outcome = driver.resize(Resize::Cpu(MilliCpu::from_cores(1))).await;
        if shrink == ShrinkCpu::Removal {
            outcome.unwrap();
            let taken_out = ("device_del".to_owned(), json!({"id": "windlass-cpu-1"}));
            assert_eq!(monitor.changes(), [taken_out]);
        } else {
            assert!(matches!(outcome, Err(DriverError::Refused { .. })));
            assert_eq!(monitor.changes(), []);
        }
    }
}

#[tokio::test]
async fn a_lost_answer_closes_the_connection_and_another_can_be_had() {
    let mut lose = true;
    let monitor = FakeMonitor::new(move |command, _| {
        if command == "qom-set" && std::mem::take(&mut lose) {
            return Reply::Silence;
        }
        Reply::Usual
    });
    let qemu =
        Qemu { qmp: monitor.path().to_owned(), vcpu_removal: false, cpu_limit: None, limits: None };
    let (mut driver, mut notices) = qemu.attach_within(LONG).await.unwrap();
    // Questions that are answered come before the one that is not.
    driver.link.limits.answer = Duration::from_secs(3);
    let error = driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap_err();
    assert!(matches!(error, DriverError::NoAnswer { command: "qom-set", .. }), "{error}");
    assert_eq!(notices.recv().await, None);
    assert!(matches!(driver.see().await, Err(DriverError::Broken(_))));
    let (mut driver, _notices) = qemu.attach_within(LONG).await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
}

#[tokio::test]
async fn an_answer_held_too_long_is_not_taken_for_that_to_the_next_command() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "device_add" => Reply::Silence,
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor).await;
    let growth = driver.resize(Resize::Cpu(MilliCpu::from_cores(3)));
    let sent = until_async("it is sent", async || !monitor.changes().is_empty());
    tokio::select! {
        outcome = growth => panic!("nobody answers, and yet {outcome:?}"),
        () = sent => {}
    }
    // The call was dropped; the connection is not.
    driver.see().await.unwrap();
}

#[tokio::test]
async fn events_between_command_and_answer_become_notices() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "query-memory-devices" => Reply::After(
            b"{\"event\": \"MEMORY_DEVICE_SIZE_CHANGE\", \"data\": {\"id\": \"vm0\"}}\r\n\
              {\"timestamp\": {\"seconds\": 1}, \"event\": \"RESET\", \"data\": {}}\r\n"
                .to_vec(),
        ),
        _ => Reply::Usual,
    });
    let (mut driver, mut notices) = attach(&monitor).await;
    driver.see().await.unwrap();
    assert_eq!(notices.recv().await, Some(Notice::Changed));
    assert_eq!(notices.recv().await, Some(Notice::Reset));
}

#[tokio::test]
async fn each_look_says_whether_qemu_runs_the_vm() {
    for (status, migration, state) in [
        (json!({"status": "running"}), json!({}), RunState::Running),
        (json!({"status": "paused"}), json!({"status": "active"}), RunState::Paused),
        (json!({"status": "running"}), json!({"status": "active"}), RunState::Migrating),
        (json!({"status": "running"}), json!({"status": "completed"}), RunState::Running),
        (json!({"status": "postmigrate"}), json!({"status": "completed"}), RunState::Saving),
        // A stand-in that names no state.
        (json!({}), json!({}), RunState::Running),
    ] {
        let answers = (status.clone(), migration.clone());
        let monitor = FakeMonitor::new(move |command, _| match command {
            "query-status" => Reply::Result(answers.0.clone()),
            "query-migrate" => Reply::Result(answers.1.clone()),
            _ => Reply::Usual,
        });
        let (mut driver, _notices) = attach(&monitor).await;
        assert_eq!(driver.see().await.unwrap().state, state, "{status} {migration}");
    }
    let silent = FakeMonitor::new(|command, _| match command {
        "query-status" | "query-migrate" => Reply::Error("CommandNotFound", "no such command"),
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&silent).await;
    assert_eq!(driver.see().await.unwrap().state, RunState::Running);
}

#[tokio::test]
async fn what_is_not_qmp_breaks_the_connection_and_nothing_else() {
    let huge = [vec![b' '; 2 << 20], b"\n".to_vec()].concat();
    let deep = [b"[".repeat(100_000), b"\n".to_vec()].concat();
    for (bytes, words) in [
        (b"no json at all\n".to_vec(), "not qmp"),
        (huge, "a line of more than"),
        (deep, "not qmp"),
        (b"{\"return\": {}, \"id\": -1}\n".to_vec(), "not qmp"),
        (b"{\"error\": {\"class\": \"x\", \"desc\": \"no id\"}}\n".to_vec(), "no id"),
        (b"{\"QMP\": {\"version\": {\"qemu\": {\"major\": 9}}}}\n".to_vec(), "not qmp"),
        (format!("{}\n", GREETING).into_bytes(), "second greeting"),
    ] {
        let mut reply = Some(bytes);
        let monitor = FakeMonitor::new(move |command, _| match (command, reply.take()) {
            ("query-hotpluggable-cpus", Some(bytes)) => Reply::Raw(bytes),
            (_, bytes) => {
                reply = bytes;
                Reply::Usual
            }
        });
        let qemu = Qemu {
            qmp: monitor.path().to_owned(),
            vcpu_removal: false,
            cpu_limit: None,
            limits: None,
        };
        let error = qemu.attach_within(LONG).await.unwrap_err();
        assert!(matches!(error, DriverError::Broken(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        qemu.attach_within(LONG).await.unwrap();
    }
}

#[tokio::test]
async fn answers_of_the_wrong_shape_are_named() {
    for (command, answer) in [
        ("query-hotpluggable-cpus", json!({})),
        ("query-memory-devices", json!([{"type": "virtio-mem"}])),
        ("query-memory-size-summary", json!({"base-memory": -1})),
    ] {
        let monitor = FakeMonitor::new(move |asked, _| {
            if asked == command { Reply::Result(answer.clone()) } else { Reply::Usual }
        });
        let qemu = Qemu {
            qmp: monitor.path().to_owned(),
            vcpu_removal: false,
            cpu_limit: None,
            limits: None,
        };
        let error = qemu.attach_within(LONG).await.unwrap_err().to_string();
        assert!(error.contains(command), "{error}");
    }
}

#[tokio::test]
async fn a_monitor_that_hangs_up_in_the_middle_of_a_command_is_not_gone() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "qom-set" => Reply::HangUp,
        _ => Reply::Usual,
    });
    let (mut driver, mut notices) = attach(&monitor).await;
    let error = driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap_err();
    assert!(matches!(error, DriverError::Broken(_)), "{error}");
    assert!(error.may_have_happened());
    assert_eq!(notices.recv().await, None);
}

#[tokio::test]
async fn no_socket_and_nobody_behind_it_are_gone() {
    let folder = Folder::create().unwrap();
    let nowhere =
        Qemu { qmp: folder.at("qmp.sock"), vcpu_removal: false, cpu_limit: None, limits: None };
    assert!(matches!(nowhere.attach().await, Err(DriverError::Gone { .. })));

    let left_behind = folder.at("left.sock");
    drop(std::os::unix::net::UnixListener::bind(&left_behind).unwrap());
    let dead = Qemu { qmp: left_behind, vcpu_removal: false, cpu_limit: None, limits: None };
    assert!(matches!(dead.attach().await, Err(DriverError::Gone { .. })));

    let monitor = FakeMonitor::new(|command, _| match command {
        "qom-set" => Reply::HangUp,
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor).await;
    std::fs::remove_file(monitor.path()).unwrap();
    let error = driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap_err();
    assert!(matches!(error, DriverError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_monitor_that_accepts_and_does_not_greet_is_taken() {
    let monitor = FakeMonitor::taken();
    let qemu =
        Qemu { qmp: monitor.path().to_owned(), vcpu_removal: false, cpu_limit: None, limits: None };
    let error = qemu.attach_within(SHORT).await.unwrap_err();
    assert!(matches!(error, DriverError::Taken { .. }), "{error}");
    let said = findings(&qemu).await;
    assert_eq!(said.len(), 1);
    assert!(said[0].text.contains("second -qmp"), "{}", said[0].text);
}

/// What a check of `qemu` tells a person, within [`SHORT`].
async fn findings(qemu: &Qemu) -> Vec<check::Finding> {
    let found = qemu.check_within(SHORT).await;
    found.unwrap_or_else(|error| vec![check::Finding::unreached(&error)])
}

/// Nobody can connect, so only an earlier connection tells which process it is.
#[tokio::test]
async fn a_monitor_whose_queue_is_full_is_told_by_the_process_that_was_there() {
    let folder = Folder::create().unwrap();
    let path = folder.at("qmp.sock");
    let socket = tokio::net::UnixSocket::new_stream().unwrap();
    socket.bind(&path).unwrap();
    let _listener = socket.listen(1).unwrap();
    let qemu = Qemu { qmp: path.clone(), vcpu_removal: false, cpu_limit: None, limits: None };
    let mut process = Process::start("sleep", |sleep| {
        sleep.arg("600");
    });
    let pid = process.id();
    let has_state = |letter: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(&format!(") {letter} "))
    };
    let said = async || qemu.attach_within(SHORT).await.unwrap_err();
    // The attempts of the driver itself fill the queue.
    for _ in 0..3 {
        let own = said().await;
        assert!(matches!(own, DriverError::Taken { .. }), "{own}: this process runs");
    }
    process.signal("STOP");
    Peer::pretend(&path, process.id());
    until_async("it is stopped", async || has_state("T")).await;
    let found = findings(&qemu).await.remove(0).text;
    assert!(found.contains(&format!("its process {pid} is stopped")), "{found}");
    assert!(found.contains("kill -CONT") && !found.contains("another"), "{found}");
    process.signal("CONT");
    until_async("it goes on", async || !has_state("T")).await;
    assert!(matches!(said().await, DriverError::Taken { .. }));
    process.kill();
    let unknown = said().await;
    assert!(matches!(unknown, DriverError::Silent { .. }), "{unknown}");
    let found = findings(&qemu).await.remove(0).text;
    assert!(found.contains("another client has it, or its process is stopped"), "{found}");
    assert!(found.contains("kill -CONT") && found.contains("second -qmp"), "{found}");
}

#[tokio::test]
async fn a_listener_that_is_no_monitor_is_told_from_one() {
    for bytes in [
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        b"{\"event\": \"RESET\"}\n".to_vec(),
        b"QEMU 7.2.22 monitor - type 'help' for more information\r\n(qemu) ".to_vec(),
        vec![b'x'; 3 << 20],
        Vec::new(),
    ] {
        let monitor = FakeMonitor::greeting_with(bytes);
        let qemu = Qemu {
            qmp: monitor.path().to_owned(),
            vcpu_removal: false,
            cpu_limit: None,
            limits: None,
        };
        let error = qemu.attach_within(LONG).await.unwrap_err();
        assert!(matches!(error, DriverError::Broken(_)), "{error}");
    }
}

#[tokio::test]
async fn dimms_are_plugged_under_our_names_and_their_backends_swept() {
    let monitor = FakeMonitor::new(|command, _| match command {
        "query-memory-devices" => Reply::Result(json!([
            {"type": "dimm", "data": {"id": "windlass-dimm-1", "memdev": "/objects/windlass-mem-1",
                "size": 128 << 20, "slot": 1}},
            {"type": "dimm", "data": {"id": "mine", "memdev": "/objects/m", "size": 64 << 20,
                "slot": 0}},
        ])),
        "query-memdev" => Reply::Result(json!([
            {"id": "windlass-mem-1", "size": 128 << 20},
            {"id": "windlass-mem-7", "size": 128 << 20},
            {"id": "m", "size": 64 << 20},
            {"size": 256 << 20},
        ])),
        "qom-get" => Reply::Result(json!({"size": 256 << 20, "slots": 4, "max-size": 4u64 << 30})),
        _ => Reply::Usual,
    });
    let (mut driver, _notices) = attach(&monitor).await;
    let Capabilities { memory_step, min, max, .. } = driver.capabilities();
    assert_eq!(memory_step, Bytes::from_mib(128));
    assert_eq!((min.mem, max.mem), (Bytes::from_mib(320), Bytes::from_mib(320 + 3 * 128)));
    let seen = driver.see().await.unwrap().memory;
    assert_eq!((seen.boot, seen.size), (Bytes::from_mib(320), Bytes::from_mib(128)));
    driver.resize(Resize::Memory(Bytes::from_mib(320 + 256))).await.unwrap();
    driver.resize(Resize::Memory(Bytes::from_mib(320))).await.unwrap();
    let leaving = driver.see().await.unwrap().memory;
    assert_eq!((leaving.requested, leaving.size), (Bytes::ZERO, Bytes::from_mib(128)));
    let swept = ("object-del".to_owned(), json!({"id": "windlass-mem-7"}));
    assert_eq!(
        monitor.changes(),
        [
            swept.clone(),
            (
                "object-add".to_owned(),
                json!({"qom-type": "memory-backend-ram", "id": "windlass-mem-0",
                    "size": 128 << 20})
            ),
            (
                "device_add".to_owned(),
                json!({"driver": "pc-dimm", "id": "windlass-dimm-0", "memdev": "windlass-mem-0"})
            ),
            ("device_del".to_owned(), json!({"id": "windlass-dimm-1"})),
            swept,
        ]
    );
}

async fn attach(monitor: &FakeMonitor) -> (QemuDriver, mpsc::Receiver<Notice>) {
    let qemu =
        Qemu { qmp: monitor.path().to_owned(), vcpu_removal: false, cpu_limit: None, limits: None };
    qemu.attach_within(LONG).await.unwrap()
}

fn with_one_vcpu_of_ours() -> Reply {
    let cpu = |core: u64, path: &str| {
        json!({"type": "host-x86_64-cpu", "vcpus-count": 1, "qom-path": path,
            "props": {"socket-id": 0, "core-id": core, "thread-id": 0}})
    };
    Reply::Result(json!([
        cpu(1, "/machine/peripheral/windlass-cpu-1"),
        cpu(0, "/machine/unattached/device[0]"),
    ]))
}
