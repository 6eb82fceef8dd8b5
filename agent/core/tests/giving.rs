//! What is read of a guest while its memory is on its way out.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;
use windlass_agent_core::{Action, Call, Event, Scaler, Settings};
use windlass_protocol::{
    Bounds, Bytes, Capabilities, ComputeUnit, InformantVersion, LoadWindow, MemorySeen, MilliCpu,
    Mode, Moment, PluginVersion, Policy, Resize, Resources, Seen, ShrinkCpu, Target, VmInfo,
    VmName,
};
use windlass_scaling::{Loads, Sample};

#[test]
fn what_looks_like_use_while_memory_goes_out_calls_nothing_off() {
    for settled in [false, true] {
        let mut vm = Vm::that_agreed_to_less();
        vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
        vm.tell(Event::Sent(Action::Measure));
        vm.answered(Action::Look, Event::Seen(seen(2, if settled { 2 } else { 3 })));
        // A block that goes is not available any more, and not yet gone.
        vm.tell(Event::Measured(vm.report(3, 1)));
        assert_eq!(vm.goal(), gib(1), "of three, two seem to be in use");
    }
}

#[test]
fn what_was_asked_for_before_the_shrink_and_answered_in_it_is_no_use_either() {
    let mut vm = Vm::that_agreed_to_less();
    vm.tell(Event::Sent(Action::Measure));
    vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
    vm.tell(Event::Measured(vm.report(3, 1)));
    assert_eq!(vm.goal(), gib(1));
}

#[test]
fn a_guest_that_is_stuck_with_its_memory_is_believed_again() {
    let mut vm = Vm::that_agreed_to_less();
    vm.answered(Action::Resize(Resize::Memory(gib(2))), Event::Resized);
    vm.answered(Action::Look, Event::Seen(seen(2, 3)));
    vm.wait(9_000);
    vm.answered(Action::Measure, Event::Measured(vm.report(3, 1)));
    assert_eq!(vm.goal(), gib(1));
    vm.wait(1_000);
    vm.answered(Action::Measure, Event::Measured(vm.report(3, 1)));
    assert_eq!(vm.goal(), gib(3));
}

#[test]
fn use_that_grows_while_nothing_goes_out_counts_at_once() {
    let mut vm = Vm::that_agreed_to_less();
    vm.answered(Action::Measure, Event::Measured(vm.report(3, 1)));
    assert_eq!(vm.goal(), gib(3));
}

/// An idle VM of three units, with a session.
struct Vm {
    scaler: Scaler,
    now: Moment,
}

impl Vm {
    fn that_agreed_to_less() -> Self {
        let now = Moment::from_millis(1_000_000);
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), gib(1)).unwrap();
        let settings = Settings {
            unit,
            trust_guest_parking: true,
            metrics_elsewhere: false,
            plugin_versions: PluginVersion::SPOKEN,
            seed: 7,
        };
        let mut vm = Self { scaler: Scaler::new(info(), settings, now), now };
        vm.tell(Event::Attached(capabilities()));
        vm.answered(Action::Look, Event::Seen(seen(3, 3)));
        let actions = vm.scaler.plan(now).actions;
        let hello = actions.into_iter().find(|action| matches!(action, Action::Register(_)));
        vm.answered(
            hello.unwrap(),
            Event::Registered { version: InformantVersion::V2_0, metrics_port: 9100 },
        );
        let Some(Action::Register(id)) = hello else { unreachable!("it was found as one") };
        vm.scaler.call(now, Call::Resume(id));
        vm.answered(Action::CheckHealth(id), Event::Healthy);
        vm.answered(Action::Look, Event::Seen(seen(3, 3)));
        vm.answered(Action::Measure, Event::Measured(vm.report(3, 3)));
        let size = Resources { cpu: MilliCpu::from_cores(1), mem: gib(2) };
        let agreed = Event::Agreed { status: String::new() };
        vm.answered(Action::Downscale(id, Default::default(), size), agreed);
        vm
    }

    fn tell(&mut self, event: Event) {
        self.scaler.observe(self.now, event);
    }

    fn answered(&mut self, action: Action, answer: Event) {
        self.tell(Event::Sent(action));
        self.tell(answer);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    fn goal(&self) -> Bytes {
        self.scaler.status(self.now).goal.unwrap().mem
    }

    /// A guest without load.
    fn report(&self, total: u64, available: u64) -> Sample {
        let cpu = Some(MilliCpu::from_cores(1));
        Sample {
            loads: Loads { fifteen_seconds: Some(0.0), ..Loads::default() },
            total: Some(gib(total)),
            available: Some(gib(available)),
            online: cpu,
            reach: cpu,
            ..Sample::empty(self.now)
        }
    }
}

fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

fn seen(requested: u64, size: u64) -> Seen {
    let memory = MemorySeen { boot: gib(1), requested: gib(requested - 1), size: gib(size - 1) };
    Seen { plugged: MilliCpu::from_cores(1), memory }
}

fn capabilities() -> Capabilities {
    Capabilities {
        cpu_step: MilliCpu::from_cores(1),
        memory_step: Bytes::from_mib(128),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: true,
        min: Resources { cpu: MilliCpu::from_cores(1), mem: gib(1) },
        max: Resources { cpu: MilliCpu::from_cores(1), mem: gib(4) },
    }
}

fn info() -> VmInfo {
    let Capabilities { min, max, .. } = capabilities();
    VmInfo {
        name: VmName::on_host("a"),
        bounds: Bounds { min, max },
        target: Target::default(),
        policy: Policy::LoadAverage,
        load_window: LoadWindow::FifteenSeconds,
        priority: 0,
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
    }
}
