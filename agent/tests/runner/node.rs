//! A node with an agent on it, and VMs to be put there.

use super::guest::Guest;
use super::plugin::Plugin;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_agent::{Agent, Config};
use windlass_drivers::Attach;
use windlass_drivers::any::AnyAttach;
use windlass_drivers_fake::FakeVm;
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_protocol::status::VmStatus;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{
    Bounds, Bytes, Capabilities, ComputeUnit, LoadWindow, MemorySeen, MilliCpu, Mode, Moment,
    Policy, Promises, Resources, RunState, ScaleDown, Seen, ShrinkCpu, Target, VmInfo, VmName,
};

/// Far more time than anything takes; it passes at once.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Node {
    pub(crate) agent: Agent,
    pub(crate) plugin: Plugin,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
}

/// A VM with its guest, and what its file says.
pub(crate) struct Vm {
    pub(crate) name: VmName,
    pub(crate) fake: FakeVm,
    pub(crate) guest: Guest,
    pub(crate) file: VmFile,
}

/// So many vCPUs and so much memory.
pub(crate) fn size(cores: u64, mib: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(cores), Bytes::from_mib(mib))
}

// === impl Node ===

impl Node {
    pub(crate) fn start() -> Self {
        Self::with_ports(0..=0)
    }

    /// With these call-back ports.
    pub(crate) fn with_ports(ports: RangeInclusive<u16>) -> Self {
        Self::told(|config| config.callback_ports = ports)
    }

    /// Whose agent is told this beside the usual.
    pub(crate) fn told(tell: impl FnOnce(&mut Config)) -> Self {
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_mib(256)).unwrap();
        let mut config = Config::new(unit);
        config.callback_ports = 0..=0;
        config.cpu_limit = Some(windlass_protocol::CpuLimit::Trust);
        // A host with plenty, whatever this machine has.
        config.meminfo = PathBuf::from("tests/meminfo");
        tell(&mut config);
        let clock = Clock::starting_at(Moment::from_millis(1_700_000_000_000));
        let (tasks, plugin) = (Tasks::default(), Plugin::default());
        let (permits, ledger) = (Arc::new(plugin.clone()), Arc::new(plugin.clone()));
        let agent = Agent::new(config, permits, ledger, &tasks, clock);
        Self { agent, plugin, tasks, clock }
    }

    /// A VM of 1 vCPU and 256 MiB that may have four times that, managed.
    pub(crate) async fn add(&self, name: &str) -> Vm {
        let vm = Vm::new(name).await;
        self.manage(&vm);
        vm
    }

    /// Manages this VM as its file says.
    pub(crate) fn manage(&self, vm: &Vm) {
        self.manage_at(&vm.file, &vm.fake);
    }

    /// Manages the VM of this file, which names this hypervisor.
    pub(crate) fn manage_at(&self, file: &VmFile, fake: &FakeVm) {
        let way = fake.clone().by_way(file.vcpu_removal.into());
        self.agent.manage(windlass_vm_files::vm(file), AnyAttach::new(way));
    }

    /// The state of a VM, while it is there.
    pub(crate) fn status(&self, vm: &Vm) -> Option<VmStatus> {
        self.agent.status().into_iter().find(|status| status.name == vm.name)
    }

    /// Waits until `holds`.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let wait = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "never: {what}; {}", self.agent.dump());
    }

    /// Waits until the VM has this, as its hypervisor says, and its guest uses that many vCPUs.
    pub(crate) async fn until_has(&self, vm: &Vm, size: Resources) {
        let has = || {
            let online = self.status(vm).and_then(|status| status.online);
            vm.fake.seen().upper().mem == size.mem && online == Some(size.cpu)
        };
        self.until(&format!("{} has {size}", vm.name), has).await;
    }

    /// Makes the VM want four units, and waits until it has them.
    pub(crate) async fn grow(&self, vm: &Vm) {
        vm.guest.state().load = 3.4;
        self.until_has(vm, size(4, 1024)).await;
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

// === impl Vm ===

impl Vm {
    pub(crate) async fn new(name: &str) -> Self {
        let fake = FakeVm::new(capabilities(), seen()).at(name);
        let guest = Guest::start(fake.clone()).await;
        let name = VmName::on_host(name);
        let file = VmFile {
            info: VmInfo {
                name: name.clone(),
                bounds: Bounds { min: size(1, 256), max: size(4, 1024) },
                target: Target::default(),
                policy: Policy::LoadAverage,
                load_window: LoadWindow::FifteenSeconds,
                priority: 0,
                mode: Mode::Act,
                memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
                paused_until: None,
                scale_down: ScaleDown::AT_ONCE,
                cpu_limit: None,
            },
            qmp: fake.place().into(),
            informant: guest.address,
            advertise: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            metrics: None,
            vcpu_removal: false,
        };
        Self { name, fake, guest, file }
    }

    /// The most that the VM may have, as its hypervisor says.
    pub(crate) fn upper(&self) -> Resources {
        self.fake.seen().upper()
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        cpu_step: MilliCpu::from_cores(1),
        limit_step: None,
        memory_step: Bytes::from_mib(2),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: size(1, 256),
        max: size(4, 1024),
    }
}

fn seen() -> Seen {
    let memory = MemorySeen { boot: Bytes::from_mib(256), ..MemorySeen::default() };
    Seen {
        plugged: MilliCpu::from_cores(1),
        limit: None,
        found_limit: None,
        memory,
        state: RunState::Running,
    }
}
