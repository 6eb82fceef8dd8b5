//! The driver against a real QEMU without a guest inside: what its monitor says and does.
//!
//! What a guest does about it is tested with real guests, end to end.

#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use windlass_drivers::{Attach, Driver, DriverError, Notice};
use windlass_drivers_qemu::check::{Finding, Topic, Verdict};
use windlass_drivers_qemu::{Qemu, QemuDriver};
use windlass_protocol::{
    Bytes, Capabilities, MemorySeen, MilliCpu, Promises, Resize, Resources, RunState, Seen,
    ShrinkCpu,
};
use windlass_testkit::wait::{until, until_async};
use windlass_testkit::{Folder, Process};

const VIRTIO_MEM: &[&str] = &[
    "-machine",
    "q35",
    "-smp",
    "2,maxcpus=4",
    "-m",
    "256M,slots=4,maxmem=4G",
    "-object",
    "memory-backend-ram,id=vmem0,size=1G",
    "-device",
    "virtio-mem-pci,id=vm0,memdev=vmem0,requested-size=64M",
];
const DIMMS: &[&str] = &["-machine", "q35", "-smp", "1", "-m", "256M,slots=4,maxmem=1G"];
const MICROVM: &[&str] = &["-machine", "microvm", "-m", "256M"];
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_machine_with_virtio_mem_says_what_it_can_do_and_what_it_has() {
    let machine = Machine::paused(VIRTIO_MEM);
    let (mut driver, _notices) = machine.attach().await;
    let gib = Bytes::from_gib(1);
    assert_eq!(
        driver.capabilities(),
        Capabilities {
            cpu_step: cores(1),
            limit_step: None,
            memory_step: Bytes::from_mib(2),
            shrink_cpu: ShrinkCpu::Parking,
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: Resources::new(cores(1), Bytes::from_mib(256)),
            max: Resources::new(cores(4), gib.saturating_add(Bytes::from_mib(256))),
        }
    );
    let memory = MemorySeen {
        boot: Bytes::from_mib(256),
        requested: Bytes::from_mib(64),
        size: Bytes::ZERO,
    };
    assert_eq!(
        driver.see().await.unwrap(),
        Seen { plugged: cores(2), limit: None, found_limit: None, memory, state: RunState::Paused }
    );
}

#[tokio::test]
async fn removal_is_not_offered_without_kvm() {
    let machine = Machine::paused(VIRTIO_MEM);
    let qemu = Qemu { vcpu_removal: true, ..machine.qemu() };
    let (mut driver, _notices) = qemu.attach().await.unwrap();
    assert_eq!(driver.capabilities().shrink_cpu, ShrinkCpu::Parking);
    driver.resize(Resize::Cpu(cores(3))).await.unwrap();
    let error = driver.resize(Resize::Cpu(cores(2))).await.unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "{error}");
    assert_eq!(driver.see().await.unwrap().plugged, cores(3));
}

#[tokio::test]
async fn growth_said_twice_has_the_effect_of_once_and_is_seen_from_another_monitor() {
    let machine = Machine::paused(VIRTIO_MEM);
    let (mut driver, _notices) = machine.attach().await;
    for _ in 0..2 {
        driver.resize(Resize::Cpu(cores(4))).await.unwrap();
        driver.resize(Resize::Memory(Bytes::from_mib(512))).await.unwrap();
    }
    let other =
        Qemu { qmp: machine.monitor(1), vcpu_removal: false, cpu_limit: None, limits: None };
    let (mut other, _other_notices) = other.attach().await.unwrap();
    for driver in [&mut driver, &mut other] {
        let seen = driver.see().await.unwrap();
        assert_eq!(seen.plugged, cores(4));
        assert_eq!(seen.memory.requested, Bytes::from_mib(256));
    }
    driver.resize(Resize::Memory(Bytes::from_mib(256))).await.unwrap();
    assert_eq!(other.see().await.unwrap().memory.requested, Bytes::ZERO);
}

#[tokio::test]
async fn a_device_without_an_id_is_found() {
    let machine = Machine::paused(&[
        "-machine",
        "q35",
        "-m",
        "256M,maxmem=4G",
        "-object",
        "memory-backend-ram,id=a,size=128M",
        "-object",
        "memory-backend-ram,id=b,size=512M",
        "-device",
        "virtio-mem-pci,memdev=b",
        "-device",
        "virtio-mem-pci,memdev=a",
    ]);
    let (mut driver, _notices) = machine.attach().await;
    for mib in [300, 896, 400, 256] {
        driver.resize(Resize::Memory(Bytes::from_mib(mib))).await.unwrap();
        let memory = driver.see().await.unwrap().memory;
        assert_eq!(memory.boot.saturating_add(memory.requested), Bytes::from_mib(mib));
    }
    assert_eq!(driver.capabilities().max.mem, Bytes::from_mib(896));
}

#[tokio::test]
async fn without_virtio_mem_memory_comes_in_dimms_as_far_as_slots_and_maxmem_reach() {
    let machine = Machine::paused(DIMMS);
    let (mut driver, _notices) = machine.attach().await;
    let Capabilities { memory_step, max, .. } = driver.capabilities();
    assert_eq!(memory_step, Bytes::from_mib(128));
    assert_eq!(max, Resources::new(cores(1), Bytes::from_mib(256 + 4 * 128)));
    for mib in [256 + 384, 256 + 384, 256 + 512] {
        driver.resize(Resize::Memory(Bytes::from_mib(mib))).await.unwrap();
        assert_eq!(driver.see().await.unwrap().memory.present(), Bytes::from_mib(mib));
    }
    let error = driver.resize(Resize::Memory(Bytes::from_mib(256 + 640))).await.unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "{error}");

    // Nobody is in there to give one back: it is asked for, and stays.
    driver.resize(Resize::Memory(Bytes::from_mib(256 + 256))).await.unwrap();
    let memory = driver.see().await.unwrap().memory;
    assert_eq!(memory.unplugging(), Bytes::from_mib(256));
    assert_eq!(memory.upper(), Bytes::from_mib(256 + 512));
}

#[tokio::test]
async fn a_backend_that_no_dimm_uses_is_given_back_to_the_host() {
    let machine = Machine::paused(DIMMS);
    let (mut driver, _notices) = machine.attach().await;
    let mut by_hand = machine.by_hand();
    let size = 128u64 << 20;
    let orphan = json!({"qom-type": "memory-backend-ram", "id": "windlass-mem-0", "size": size});
    by_hand.call("object-add", orphan);
    driver.see().await.unwrap();
    assert!(!by_hand.call("query-memdev", json!({})).to_string().contains("windlass-mem-0"));
}

#[tokio::test]
async fn dimms_of_others_count_as_boot_memory_and_take_slots() {
    let mut arguments = DIMMS.to_vec();
    arguments.extend(["-object", "memory-backend-ram,id=m,size=128M"]);
    arguments.extend(["-device", "pc-dimm,id=mine,memdev=m"]);
    let machine = Machine::paused(&arguments);
    let (mut driver, _notices) = machine.attach().await;
    let Capabilities { min, max, .. } = driver.capabilities();
    assert_eq!((min.mem, max.mem), (Bytes::from_mib(384), Bytes::from_mib(384 + 3 * 128)));
    assert_eq!(driver.see().await.unwrap().memory.boot, Bytes::from_mib(384));
    driver.resize(Resize::Memory(max.mem)).await.unwrap();
    assert_eq!(driver.see().await.unwrap().memory.present(), max.mem);
}

#[tokio::test]
async fn a_machine_without_hotplug_is_seen_and_keeps_its_size() {
    let machine = Machine::paused(MICROVM);
    let (mut driver, _notices) = machine.attach().await;
    let Capabilities { min, max, shrink_memory, .. } = driver.capabilities();
    assert_eq!((min, shrink_memory), (max, false));
    assert_eq!(driver.see().await.unwrap().upper(), max);
    let error = driver.resize(Resize::Cpu(cores(2))).await.unwrap_err();
    assert!(matches!(error, DriverError::Refused { .. }), "{error}");
    let more = Resize::Memory(Bytes::from_mib(512));
    assert!(matches!(driver.resize(more).await, Err(DriverError::Refused { .. })));
    driver.resize(Resize::Memory(max.mem)).await.unwrap();
}

#[tokio::test]
async fn a_monitor_serves_one_and_the_next_when_that_one_left() {
    let machine = Machine::paused(VIRTIO_MEM);
    let first = machine.attach().await;
    let error = machine.qemu().attach().await.unwrap_err();
    assert!(matches!(error, DriverError::Taken { .. }), "{error}");
    assert_eq!(machine.verdict(Topic::Monitor).await, Some(Verdict::Blocked));
    drop(first);
    let (mut driver, _notices) = machine.attach().await;
    driver.see().await.unwrap();
}

#[tokio::test]
async fn a_killed_process_is_gone_and_says_so_by_the_end_of_its_notices() {
    let mut machine = Machine::paused(VIRTIO_MEM);
    let (mut driver, mut notices) = machine.attach().await;
    machine.process.signal("KILL");
    assert_eq!(next(&mut notices).await, None);
    let error = driver.see().await.unwrap_err();
    assert!(matches!(error, DriverError::Gone { .. }), "{error}");
    machine.process.wait();
    let error = machine.qemu().attach().await.unwrap_err();
    assert!(matches!(error, DriverError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_process_that_quits_is_gone() {
    let machine = Machine::paused(VIRTIO_MEM);
    let (mut driver, mut notices) = machine.attach().await;
    machine.by_hand().call("quit", json!({}));
    assert_eq!(next(&mut notices).await, None);
    let error = driver.see().await.unwrap_err();
    assert!(matches!(error, DriverError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_stopped_process_gives_no_answer_and_is_not_gone() {
    let machine = Machine::paused(VIRTIO_MEM);
    let (mut driver, mut notices) = machine.attach().await;
    machine.process.signal("STOP");
    let error = driver.resize(Resize::Cpu(cores(3))).await.unwrap_err();
    assert!(matches!(error, DriverError::NoAnswer { .. }), "{error}");
    assert!(error.may_have_happened());
    assert_eq!(next(&mut notices).await, None);
    let refused = machine.qemu().attach().await.err();
    assert!(!matches!(refused, Some(DriverError::Gone { .. })), "{refused:?}");
    machine.process.signal("CONT");
    let (mut driver, _notices) = machine.attach().await;
    driver.resize(Resize::Cpu(cores(3))).await.unwrap();
    assert_eq!(driver.see().await.unwrap().plugged, cores(3));
}

#[tokio::test]
async fn a_reset_is_told() {
    let machine = Machine::running(VIRTIO_MEM);
    let (mut driver, mut notices) = machine.attach().await;
    machine.by_hand().call("system_reset", json!({}));
    while next(&mut notices).await.unwrap() != Notice::Reset {}
    // What was asked for outlives it.
    assert_eq!(driver.see().await.unwrap().memory.requested, Bytes::from_mib(64));
}

#[tokio::test]
async fn whether_qemu_runs_the_vm_is_told_and_seen() {
    let machine = Machine::running(VIRTIO_MEM);
    let (mut driver, mut notices) = machine.attach().await;
    let mut by_hand = machine.by_hand();
    assert_eq!(driver.see().await.unwrap().state, RunState::Running);
    for (command, state) in [("stop", RunState::Paused), ("cont", RunState::Running)] {
        by_hand.call(command, json!({}));
        while next(&mut notices).await.unwrap() != Notice::Changed {}
        assert_eq!(driver.see().await.unwrap().state, state, "{command}");
    }
}

#[tokio::test]
async fn a_vm_that_is_saved_is_migrating_then_saved_and_runs_again_if_that_is_called_off() {
    let machine = Machine::running(VIRTIO_MEM);
    let (mut driver, _notices) = machine.attach().await;
    let mut by_hand = machine.by_hand();
    by_hand.call("migrate-set-parameters", json!({"max-bandwidth": 4096}));
    by_hand.call("migrate", json!({"uri": "exec:cat > /dev/null"}));
    is_in(&mut driver, RunState::Migrating).await;
    by_hand.call("migrate_cancel", json!({}));
    is_in(&mut driver, RunState::Running).await;
    by_hand.call("migrate-set-parameters", json!({"max-bandwidth": 1_u64 << 30}));
    by_hand.call("migrate", json!({"uri": "exec:cat > /dev/null"}));
    is_in(&mut driver, RunState::Saving).await;
    // A migration that ends is not over at once, and refuses this until then.
    let mut over = || by_hand.ask("cont", json!({})).get("return").is_some();
    until_async("the migration ends", async || over()).await;
    is_in(&mut driver, RunState::Running).await;
}

#[tokio::test]
async fn a_check_says_what_scales() {
    let machine = Machine::paused(VIRTIO_MEM);
    let findings = machine.qemu().check().await;
    let said: Vec<_> = findings.iter().map(|finding| (finding.topic, finding.verdict)).collect();
    assert_eq!(
        said,
        [
            (Topic::Version, Verdict::Good),
            (Topic::Accelerator, Verdict::Limited),
            (Topic::Cpu, Verdict::Good),
            // It shares the test's cgroup.
            (Topic::Limit, Verdict::Limited),
            (Topic::Memory, Verdict::Good),
        ]
    );
    assert!(text(&findings, Topic::Cpu).contains("can grow to 4"));
    assert!(text(&findings, Topic::Memory).starts_with("256MiB to 1.25GiB by virtio-mem"));
}

#[tokio::test]
async fn a_check_says_what_does_not_scale_and_why() {
    let mut arguments = DIMMS.to_vec();
    arguments.extend(["-device", "virtio-balloon-pci"]);
    let machine = Machine::paused(&arguments);
    assert_eq!(machine.verdict(Topic::Cpu).await, Some(Verdict::Limited));
    assert_eq!(machine.verdict(Topic::Memory).await, Some(Verdict::Limited));
    assert_eq!(machine.verdict(Topic::Balloon).await, Some(Verdict::Good));
    let findings = machine.qemu().check().await;
    assert!(text(&findings, Topic::Cpu).contains("-smp 1,maxcpus=N"));

    // As of a hugetlbfs that is mounted there; no page of it is needed.
    let folder = Folder::create().unwrap();
    let pool = folder.at("windlass-huge");
    let backend = format!("memory-backend-file,id=pages,size=16M,mem-path={}", pool.display());
    for (arguments, says) in
        [(VIRTIO_MEM, "memory moves in steps of"), (DIMMS, "of ordinary pages")]
    {
        let machine = Machine::paused(&[arguments, &["-object", &backend]].concat());
        assert_eq!(machine.verdict(Topic::Hugepages).await, Some(Verdict::Limited));
        let findings = machine.qemu().check().await;
        let said = text(&findings, Topic::Hugepages);
        assert!(said.starts_with("Huge pages back pages") && said.contains(says), "{said}");
    }

    let fixed = Machine::paused(MICROVM);
    assert_eq!(fixed.verdict(Topic::Cpu).await, Some(Verdict::Blocked));
    assert_eq!(fixed.verdict(Topic::Memory).await, Some(Verdict::Blocked));

    let nowhere = Qemu {
        qmp: PathBuf::from("/nonexistent/qmp.sock"),
        vcpu_removal: false,
        cpu_limit: None,
        limits: None,
    };
    let findings = nowhere.check().await;
    assert_eq!((findings.len(), findings[0].verdict), (1, Verdict::Blocked));
    assert!(findings[0].text.contains("is the VM running"), "{}", findings[0].text);
}

/// A QEMU with two monitors. It ends with this value.
struct Machine {
    process: Process,
    folder: Folder,
}

/// A monitor worked by hand.
struct ByHand(BufReader<UnixStream>);

// === impl Machine ===

impl Machine {
    /// One that executes nothing.
    fn paused(arguments: &[&str]) -> Self {
        Self::start(&[arguments, &["-S"]].concat())
    }

    /// One whose firmware finds nothing to boot.
    fn running(arguments: &[&str]) -> Self {
        Self::start(arguments)
    }

    fn start(arguments: &[&str]) -> Self {
        let folder = Folder::create().unwrap();
        let process = Process::start("qemu-system-x86_64", |command| {
            command.args(["-accel", "tcg", "-nodefaults", "-no-user-config", "-display", "none"]);
            command.args(arguments).stdout(Stdio::null());
            for monitor in 0..2 {
                let path = folder.at(&format!("qmp{monitor}.sock"));
                command.args(["-qmp", &format!("unix:{},server=on,wait=off", path.display())]);
            }
        });
        let mut machine = Self { process, folder };
        until("both monitors listen", || {
            let ended = machine.process.ended();
            assert!(
                ended.is_none(),
                "qemu-system-x86_64 ended with {ended:?}; its words are above. `make setup`, or \
                 `dev/need qemu-system-x86:qemu-system-x86_64`, installs it"
            );
            UnixStream::connect(machine.monitor(1)).is_ok()
        });
        machine
    }

    fn monitor(&self, number: u32) -> PathBuf {
        self.folder.at(&format!("qmp{number}.sock"))
    }

    fn qemu(&self) -> Qemu {
        Qemu { qmp: self.monitor(0), vcpu_removal: false, cpu_limit: None, limits: None }
    }

    /// Attaches as soon as the one before has left.
    async fn attach(&self) -> (QemuDriver, mpsc::Receiver<Notice>) {
        let begun = Instant::now();
        loop {
            match self.qemu().attach().await {
                Ok(attached) => return attached,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
        }
    }

    fn by_hand(&self) -> ByHand {
        let stream = UnixStream::connect(self.monitor(1)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut by_hand = ByHand(BufReader::new(stream));
        by_hand.line();
        by_hand.call("qmp_capabilities", json!({}));
        by_hand
    }

    async fn verdict(&self, topic: Topic) -> Option<Verdict> {
        let findings = self.qemu().check().await;
        findings.iter().find(|finding| finding.topic == topic).map(|finding| finding.verdict)
    }
}

// === impl ByHand ===

impl ByHand {
    fn send(&mut self, command: &str, arguments: Value) {
        let line = json!({"execute": command, "arguments": arguments});
        writeln!(self.0.get_mut(), "{line}").unwrap();
    }

    fn call(&mut self, command: &str, arguments: Value) -> Value {
        let line = self.ask(command, arguments);
        line.get("return").cloned().unwrap_or_else(|| panic!("{command}: {line}"))
    }

    /// The whole answer, also if it is a refusal.
    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        self.send(command, arguments);
        loop {
            let line = self.line();
            if line.get("event").is_none() {
                return line;
            }
        }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// Waits until the VM is in this state.
async fn is_in(driver: &mut QemuDriver, state: RunState) {
    until_async(&format!("it is {state:?}"), async || driver.see().await.unwrap().state == state)
        .await;
}

async fn next(notices: &mut mpsc::Receiver<Notice>) -> Option<Notice> {
    tokio::time::timeout(PATIENCE, notices.recv()).await.unwrap()
}

fn cores(count: u64) -> MilliCpu {
    MilliCpu::from_cores(count)
}

fn text(findings: &[Finding], topic: Topic) -> &str {
    &findings.iter().find(|finding| finding.topic == topic).unwrap().text
}
