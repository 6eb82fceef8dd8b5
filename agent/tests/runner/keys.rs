//! Each key of a VM file, changed again and again while the VM runs, takes effect each time.

use super::guest::Manner;
use super::node::{Node, Vm, size};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use windlass_agent::NodeEvent;
use windlass_drivers_fake::FakeVm;
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::vm_file::{VM, VmFile};
use windlass_protocol::{Bytes, CpuLimit, LoadWindow, Mode, Resources, VmInfo, Waiting};

/// A VM whose file says one thing or the other, and what can be seen of it.
struct Bench {
    node: Node,
    vm: Vm,
    /// Another VM, of which the file may name parts.
    other: Vm,
    /// Attempts to connect before the file was changed last.
    tried: usize,
}

/// One key.
struct Row {
    key: &'static str,
    /// What is written: the one thing, or the other.
    write: fn(&mut VmFile, &Vm, bool),
    /// What follows from it.
    shows: fn(&Bench, &VmStatus, bool) -> bool,
}

/// Keys of which there is one value, and those that stand for others.
const WITHOUT_A_CHOICE: [&str; 2] = ["policy", "annotations"];

/// What follows from these is seen after a while: they have a test of their own.
const WITH_A_TEST: [&str; 2] = ["scale_down.cpu", "scale_down.memory"];

/// This is seen once a guest has parked vCPUs: it has a test of its own.
const OF_PARKED: &str = "cpu_limit";

const ROWS: [Row; 15] = [
    Row {
        key: "qmp",
        write: |file, other, changed| {
            if changed {
                file.qmp = other.file.qmp.clone();
            }
        },
        shows: |bench, status, changed| {
            let connected = (bench.vm.fake.is_connected(), bench.other.fake.is_connected());
            connected == (!changed, changed) && status.session == SessionState::Active
        },
    },
    Row {
        key: "informant",
        write: |file, other, changed| {
            if changed {
                file.informant = other.guest.address;
            }
        },
        shows: |bench, status, changed| {
            let registered = |vm: &Vm| vm.guest.state().agent.is_some();
            let registered = (registered(&bench.vm), registered(&bench.other));
            registered == (!changed, changed) && status.session == SessionState::Active
        },
    },
    Row {
        key: "advertise",
        write: |file, _, changed| file.advertise = Some(advertised(changed)),
        shows: |bench, status, changed| {
            let called_back = bench.vm.guest.state().agent.map(|(_, at)| at.ip());
            called_back == Some(advertised(changed)) && status.session == SessionState::Active
        },
    },
    Row {
        key: "metrics",
        write: |file, other, changed| file.metrics = changed.then_some(other.guest.address),
        shows: |bench, _, changed| {
            let (ours, others) = (bench.vm.guest.state().reads, bench.other.guest.state().reads);
            let (read, unread) = if changed { (others, ours) } else { (ours, others) };
            // A reading may have been under way.
            read > 5 && unread <= 1
        },
    },
    Row {
        key: "mode",
        write: |file, _, changed| file.info.mode = if changed { Mode::Observe } else { Mode::Act },
        shows: |_, status, changed| {
            let observes = status.waiting.contains(&Waiting::Observing);
            observes == changed && (status.session == SessionState::Absent) == changed
        },
    },
    Row {
        key: "load_window",
        write: |file, _, changed| {
            file.info.load_window =
                if changed { LoadWindow::FiveSeconds } else { LoadWindow::FifteenSeconds };
        },
        shows: |_, status, changed| calls_for(status, if changed { size(4, 1024) } else { TWO }),
    },
    Row {
        key: "priority",
        write: |file, _, changed| file.info.priority = if changed { 9 } else { 0 },
        shows: |bench, status, changed| {
            let priority = if changed { 9 } else { 0 };
            status.priority == priority && bench.booked().priority == priority
        },
    },
    Row {
        key: "memory_slot",
        write: |file, _, changed| file.info.memory_slot = Bytes::from_mib(slot(changed)),
        shows: |bench, _, changed| {
            let unit = bench.node.plugin.unit(&bench.vm.name).map(|unit| unit.mem.mib());
            unit == Some(slot(changed).max(256))
                && bench.booked().memory_slot.mib() == slot(changed)
        },
    },
    Row {
        key: "vcpu_removal",
        write: |file, _, changed| file.vcpu_removal = changed,
        // What can be done with a VM is asked when it is attached to.
        shows: |bench, status, _| {
            bench.vm.fake.tried() > bench.tried && status.session == SessionState::Active
        },
    },
    Row {
        key: "min.cpu",
        write: |file, _, changed| {
            file.info.bounds.min.cpu = size(if changed { 3 } else { 1 }, 0).cpu
        },
        shows: |_, status, changed| calls_for(status, size(if changed { 3 } else { 2 }, 512)),
    },
    Row {
        key: "min.memory",
        write: |file, _, changed| {
            file.info.bounds.min.mem = Bytes::from_mib(if changed { 768 } else { 256 });
        },
        shows: |_, status, changed| calls_for(status, size(2, if changed { 768 } else { 512 })),
    },
    Row {
        key: "max.cpu",
        write: |file, _, changed| {
            file.info.bounds.max.cpu = size(if changed { 1 } else { 4 }, 0).cpu
        },
        shows: |_, status, changed| calls_for(status, size(if changed { 1 } else { 2 }, 512)),
    },
    Row {
        key: "max.memory",
        write: |file, _, changed| {
            file.info.bounds.max.mem = Bytes::from_mib(if changed { 256 } else { 1024 });
        },
        shows: |_, status, changed| calls_for(status, size(2, if changed { 256 } else { 512 })),
    },
    Row {
        key: "target.load_average",
        write: |file, _, changed| {
            file.info.target.load_average = if changed { 0.45 } else { 0.9 };
        },
        shows: |_, status, changed| calls_for(status, if changed { size(4, 1024) } else { TWO }),
    },
    Row {
        key: "target.memory",
        write: |file, _, changed| file.info.target.memory = if changed { 0.25 } else { 0.75 },
        shows: |_, status, changed| calls_for(status, if changed { size(3, 768) } else { TWO }),
    },
];

/// What the guest's figures call for, as the file is at first.
const TWO: Resources =
    Resources::new(windlass_protocol::MilliCpu::from_cores(2), Bytes::from_mib(512));

#[test]
fn each_key_has_a_row() {
    let mut keys: Vec<_> = VM.fields().map(|key| key.name).collect();
    let rows = ROWS.iter().map(|row| row.key);
    let mut rows: Vec<_> =
        rows.chain(WITHOUT_A_CHOICE).chain(WITH_A_TEST).chain([OF_PARKED]).collect();
    keys.sort_unstable();
    rows.sort_unstable();
    assert_eq!(rows, keys);
}

#[tokio::test(start_paused = true)]
async fn each_key_takes_effect_each_time_that_it_is_changed() {
    for row in &ROWS {
        let mut bench = Bench::new().await;
        for changed in [false, true, false, true] {
            bench.write(row, changed);
            let shows = || {
                let status = bench.node.status(&bench.vm);
                status.is_some_and(|status| (row.shows)(&bench, &status, changed))
            };
            bench.node.until(&format!("{} = {changed}", row.key), shows).await;
        }
        assert_eq!((bench.vm.fake.turned_away(), bench.other.fake.turned_away()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_called_for_is_kept_as_long_as_the_file_says_each_time() {
    for axis in WITH_A_TEST {
        let Bench { node, mut vm, .. } = Bench::new().await;
        for keeps in [false, true, false, true] {
            let hold = Duration::from_secs(if keeps { 3_600 } else { 0 });
            let scale_down = &mut vm.file.info.scale_down;
            let said =
                if axis == WITH_A_TEST[0] { &mut scale_down.cpu } else { &mut scale_down.memory };
            *said = hold;
            node.manage(&vm);
            node.grow(&vm).await;
            vm.guest.state().load = 0.1;
            node.pass(60).await;
            let goal = node.status(&vm).unwrap().goal.unwrap();
            let cpu_keeps = keeps && axis == WITH_A_TEST[0];
            let cpu = size(if cpu_keeps { 4 } else { 1 }, 0).cpu;
            let mem = size(0, if keeps && !cpu_keeps { 1024 } else { 256 }).mem;
            assert_eq!(goal, Resources::new(cpu, mem), "{axis} {keeps}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn parked_vcpus_count_unless_the_file_trusts_each_time_that_it_is_changed() {
    let Bench { node, mut vm, .. } = Bench::new().await;
    node.manage(&vm);
    node.grow(&vm).await;
    vm.guest.state().load = 0.1;
    let counts = |vm: &Vm, cpu: u64| {
        let upper = node.status(vm).and_then(|status| status.upper);
        upper.is_some_and(|upper| upper.cpu == size(cpu, 0).cpu)
    };
    node.until("the agent is told to trust, and the guest has parked", || counts(&vm, 1)).await;
    for (said, cpu) in [(CpuLimit::None, 4), (CpuLimit::Trust, 1), (CpuLimit::Cgroup, 4)] {
        vm.file.info.cpu_limit = Some(said);
        node.manage(&vm);
        node.until(&format!("{OF_PARKED} = {said}"), || counts(&vm, cpu)).await;
    }
}

/// Without an informant, figures that are read elsewhere are what an agent may go by.
#[tokio::test(start_paused = true)]
async fn a_vm_without_an_informant_follows_figures_of_elsewhere_while_its_file_names_them() {
    let Bench { node, mut vm, other, .. } = Bench::new().await;
    vm.guest.state().informant = Manner::Stalls;
    for (load, units) in [(1.7, 2), (3.4, 4)] {
        let before = vm.upper();
        for guest in [&vm.guest, &other.guest] {
            guest.state().load = load;
        }
        vm.file.metrics = None;
        node.manage(&vm);
        node.pass(120).await;
        assert_eq!(vm.upper(), before, "what its informant does not vouch for");
        vm.file.metrics = Some(other.guest.address);
        node.manage(&vm);
        let size = size(units, units * 256);
        node.until(&format!("it has {size}"), || vm.upper() == size).await;
    }
}

fn advertised(changed: bool) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, if changed { 2 } else { 1 }))
}

fn slot(changed: bool) -> u64 {
    if changed { 512 } else { 128 }
}

fn calls_for(status: &VmStatus, goal: Resources) -> bool {
    status.goal == Some(goal)
}

// === impl Bench ===

impl Bench {
    async fn new() -> Self {
        let node = Node::told(|config| config.callback_listen = Ipv4Addr::UNSPECIFIED.into());
        let (vm, other) = (Vm::new("a").await, Vm::new("b").await);
        for guest in [&vm.guest, &other.guest] {
            let mut state = guest.state();
            (state.load, state.load_5s) = (1.7, Some(3.4));
            state.used = Bytes::from_mib(60);
        }
        Self { node, vm, other, tried: 0 }
    }

    /// Writes the VM's file.
    fn write(&mut self, row: &Row, changed: bool) {
        let mut file = self.vm.file.clone();
        (row.write)(&mut file, &self.other, changed);
        self.tried = self.vm.fake.tried();
        for guest in [&self.vm.guest, &self.other.guest] {
            let mut state = guest.state();
            state.reads = 0;
            if row.key == "informant" || row.key == "advertise" {
                state.agent = None;
            }
        }
        self.node.manage_at(&file, self.at(&file));
    }

    /// The machine that the file names.
    fn at(&self, file: &VmFile) -> &FakeVm {
        let other = file.qmp == self.other.file.qmp;
        if other { &self.other.fake } else { &self.vm.fake }
    }

    /// What the books were last told that the VM should be.
    fn booked(&self) -> VmInfo {
        let told = self.node.plugin.told(&self.vm.name);
        let info = told.into_iter().rev().find_map(|event| match event {
            NodeEvent::Entered { info, .. } | NodeEvent::Updated { info } => Some((*info).clone()),
            NodeEvent::Witnessed { .. } | NodeEvent::Counted { .. } | NodeEvent::Left { .. } => {
                None
            }
        });
        info.unwrap()
    }
}
