//! What a person is told of machines, by the answers of a monitor that only talks.

use super::*;
use serde_json::json;
use windlass_protocol::Resources;
use windlass_testkit::Folder;
use windlass_testkit::qmp::{FakeMonitor, Reply};

/// What is said of a monitor that only talks.
const NO_THREADS: &str = "limited limit: The host does not limit its CPU, so every plugged vCPU counts, parked \
    ones too: QEMU named no thread of a vCPU, so its process cannot be told from a proxy's.";

#[test]
fn a_person_is_told_which_limit_holds_and_how_to_get_the_better_one() {
    let said = |choice| {
        let finding = limit_finding(Err(Unlimited::NoProcess), choice);
        (finding.verdict, finding.text)
    };
    for (choice, verdict, words) in [
        (None, Verdict::Limited, "every plugged vCPU counts, parked ones too: the process of QEMU"),
        (Some(CpuLimit::Cgroup), Verdict::Blocked, "The host does not limit its CPU"),
        (Some(CpuLimit::None), Verdict::Limited, "\"none\": every plugged vCPU counts"),
        (
            Some(CpuLimit::Trust),
            Verdict::Limited,
            "\"trust\": a vCPU that the guest says it has parked",
        ),
    ] {
        let (said, text) = said(choice);
        assert_eq!(said, verdict, "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn a_usual_machine_scales() {
    for (vcpu_removal, back) in [
        (false, "vCPUs are parked inside the guest when they are given back"),
        (true, "vCPUs are parked inside the guest, since removal needs KVM"),
    ] {
        let said = said(vcpu_removal, |_, _| Reply::Usual).await;
        assert_eq!(
            said,
            [
                "good version: QEMU 7.2.22.",
                "limited accelerator: The guest is emulated (TCG): it scales, slowly, and its vCPUs \
                 are never taken out.",
                &format!("good cpu: 2 vCPUs, which can grow to 4; {back}."),
                NO_THREADS,
                "good memory: 256MiB to 1.25GiB by virtio-mem, in steps of 2MiB.",
            ]
        );
    }
}

#[tokio::test]
async fn a_machine_that_is_full_is_told_what_it_lacks_and_what_works_against_it() {
    let full = |command: &str, arguments: &Value| match command {
        "query-hotpluggable-cpus" => Reply::Result(json!([
            {"type": "host", "props": {"core-id": 0}, "qom-path": "/machine/unattached/device[0]"},
        ])),
        "query-memory-devices" => Reply::Result(json!([])),
        "qom-get" if arguments["path"] == "/machine" => {
            Reply::Result(json!({"slots": 4, "max-size": 256 << 20}))
        }
        "query-balloon" => Reply::Result(json!({"actual": 192 << 20})),
        _ => with_devices(command, arguments),
    };
    assert_eq!(
        said(true, full).await,
        [
            "good version: QEMU 7.2.22.",
            "good accelerator: KVM runs the guest.",
            "limited cpu: 1 vCPU, and no place for more: start the VM with -smp 1,maxcpus=N to let \
             it grow; vCPUs that Windlass added are taken out again.",
            NO_THREADS,
            "blocked memory: 256MiB to 256MiB by DIMMs of 128MiB; a virtio-mem device would give \
             finer steps and let a shrinkage be taken back.",
            "limited hugepages: Huge pages back shared, mounted; DIMMs that Windlass adds are of \
             ordinary pages, which may be slower.",
            "limited vfio: gpu, device[3]: a device handed through pins all memory that the guest has.",
            "limited balloon: A balloon holds 64MiB of the guest's memory: Windlass counts it as had, \
             and whoever inflates the balloon works against it.",
        ]
    );
}

#[tokio::test]
async fn devices_of_a_machine_with_virtio_mem_limit_its_steps() {
    let roomy = |command: &str, arguments: &Value| match command {
        "query-balloon" => Reply::Result(json!({"actual": 256 << 20})),
        _ => with_devices(command, arguments),
    };
    assert_eq!(
        said(false, roomy).await[5..],
        [
            "limited hugepages: Huge pages back shared, mounted: memory moves in steps of 2MiB, and \
             grows only while the host's pool has free pages.",
            "limited vfio: gpu, device[3]: a device handed through pins all memory that the guest \
             has and limits how many blocks virtio-mem can map; a larger block-size helps.",
            "good balloon: A balloon is there and empty; Windlass does not use it.",
        ]
    );
}

#[tokio::test]
async fn dimms_with_room_and_a_machine_of_one_size_are_told_apart() {
    let machine = |slots: u64| {
        move |command: &str, _: &Value| match command {
            "query-hotpluggable-cpus" => Reply::Error("GenericError", "not supported"),
            "query-cpus-fast" => Reply::Result(json!([{}, {}])),
            "query-memory-devices" => Reply::Result(json!([])),
            "qom-get" => Reply::Result(json!({"slots": slots, "max-size": 1u64 << 30})),
            _ => Reply::Usual,
        }
    };
    assert_eq!(
        said(false, machine(2)).await[2..],
        [
            "blocked cpu: 2 vCPUs, and this machine type cannot add any.",
            NO_THREADS,
            "limited memory: 256MiB to 512MiB by DIMMs of 128MiB; a virtio-mem device would give \
             finer steps and let a shrinkage be taken back.",
        ]
    );
    assert_eq!(
        said(false, machine(0)).await[4],
        "blocked memory: 256MiB, which cannot change: start the VM with -m SIZE,maxmem=MOST and a \
         virtio-mem-pci device."
    );
}

#[tokio::test]
async fn what_a_monitor_does_not_answer_is_told_beside_what_it_does() {
    let mute = |command: &str, _: &Value| match command {
        "query-kvm" => Reply::Error("GenericError", "no"),
        _ => Reply::Usual,
    };
    assert_eq!(
        said(false, mute).await,
        [
            "good version: QEMU 7.2.22.",
            "limited monitor: The monitor did not answer everything: no.",
        ]
    );
    let folder = Folder::create().unwrap();
    let nowhere =
        Qemu { qmp: folder.at("qmp.sock"), vcpu_removal: false, cpu_limit: None, limits: None };
    assert!(matches!(nowhere.try_check().await, Err(DriverError::Gone { .. })));
    let found = nowhere.check().await;
    assert!(found.len() == 1 && found[0].is_unreached(), "{found:?}");
    assert!(found[0].text.ends_with("is the VM running, and is this its qmp?"), "{found:?}");
}

#[test]
fn a_monitor_that_cannot_be_used_is_told_from_all_else() {
    let place = || "/run/a.sock".to_owned();
    let reason = || "no".to_owned();
    let limit = std::time::Duration::from_secs(5);
    for (error, advice) in [
        (DriverError::Gone { place: place(), why: reason() }, "is the VM running"),
        (DriverError::Taken { place: place() }, "both work at the same time"),
        (DriverError::Silent { place: place() }, "Look at the state of its QEMU"),
        (DriverError::Stopped { place: place(), pid: 7 }, "Nothing moves until it goes on"),
        (DriverError::NoAnswer { command: "see", limit }, "stopped or very busy"),
        (DriverError::Broken(reason()), "control mode (-qmp)"),
    ] {
        let found = Finding::unreached(&error);
        assert!(found.is_unreached() && found.text.contains(advice), "{found:?}");
        assert!(found.text.starts_with(&format!("{error}. ")), "{found:?}");
    }
    assert!(Finding::lost().is_unreached() && Finding::lost().text.starts_with("QEMU does not"));
    for (topic, verdict) in [(Topic::Monitor, Verdict::Limited), (Topic::Cpu, Verdict::Blocked)] {
        assert!(!Finding::new(topic, verdict, "").is_unreached(), "{topic}");
    }
    let old = version(Version { major: 7, minor: 1, micro: 99 });
    assert_eq!(
        line(&old),
        "limited version: QEMU 7.1.99 is older than 7.2.0, the oldest that is supported."
    );
    assert_eq!(line(&version(OLDEST)), "good version: QEMU 7.2.0.");
    let all = [Topic::Hugepages, Topic::Informant, Topic::Vfio];
    assert_eq!(
        all.map(|topic| format!("{topic:>10}")),
        ["hugepages", "informant", "vfio"].map(|t| format!("{t:>10}"))
    );
}

#[test]
fn a_maximum_beyond_what_qemu_was_started_for_is_told_on_each_axis() {
    let max = Resources::new(MilliCpu::from_milli(4_500), Bytes::from_gib(2));
    let short = |most| {
        let found = Finding::new(Topic::Cpu, Verdict::Good, "").with(most).short_of(max);
        found.map(|finding| line(&finding))
    };
    assert_eq!(
        short(Most::Cpu(MilliCpu::from_cores(4))).unwrap(),
        "limited cpu: `max` is 4.5 vCPU, and QEMU was started for 4: the VM never has its maximum. \
         Start it with -smp maxcpus=5, or lower max.cpu."
    );
    let memory = short(Most::Memory(Bytes::from_gib(1))).unwrap();
    assert!(memory.contains("`max` is 2GiB, and QEMU was started to give 1GiB"), "{memory}");
    assert_eq!(short(Most::Cpu(MilliCpu::from_cores(5))), None);
    assert_eq!(short(Most::Memory(Bytes::from_gib(2))), None);
    assert_eq!(Finding::lost().short_of(max), None, "nothing is known of what it can give");
}

/// A machine with KVM, huge pages, and devices that are handed through.
fn with_devices(command: &str, arguments: &Value) -> Reply {
    let child = |name: &str, kind: &str| json!({"name": name, "type": format!("child<{kind}>")});
    let of = |key: &str| arguments[key].as_str().unwrap_or_default();
    match (command, of("path"), of("property")) {
        ("query-kvm", ..) => Reply::Result(json!({"enabled": true, "present": true})),
        ("qom-list", "/objects", _) => Reply::Result(json!([
            child("shared", "memory-backend-memfd"),
            child("small", "memory-backend-memfd"),
            child("mounted", "memory-backend-file"),
            child("file", "memory-backend-file"),
            child("ram", "memory-backend-ram"),
        ])),
        ("qom-get", "/objects/shared", "hugetlb") => Reply::Result(json!(true)),
        ("qom-get", "/objects/small", "hugetlb") => Reply::Result(json!(false)),
        ("qom-get", "/objects/mounted", "mem-path") => Reply::Result(json!("/dev/hugepages/a")),
        ("qom-get", "/objects/file", "mem-path") => Reply::Result(json!("/tmp/a")),
        ("qom-list", "/machine/peripheral", _) => {
            Reply::Result(json!([child("gpu", "vfio-pci"), child("net", "virtio-net-pci")]))
        }
        ("qom-list", "/machine/peripheral-anon", _) => {
            Reply::Result(json!([child("device[3]", "vfio-pci")]))
        }
        _ => Reply::Usual,
    }
}

/// What is found of a machine that answers like this: a line each.
async fn said(
    vcpu_removal: bool,
    script: impl FnMut(&str, &Value) -> Reply + Send + 'static,
) -> Vec<String> {
    let monitor = FakeMonitor::new(script);
    let qemu = Qemu { qmp: monitor.path().to_owned(), vcpu_removal, cpu_limit: None, limits: None };
    qemu.check().await.iter().map(line).collect()
}

fn line(finding: &Finding) -> String {
    format!("{} {}: {}", finding.verdict, finding.topic, finding.text)
}
