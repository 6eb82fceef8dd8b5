//! The rest of a goal: what waits, for how long, and what never does.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use windlass_protocol::{
    Bounds, Bytes, Capabilities, Clip, ComputeUnit, LoadWindow, MilliCpu, Mode, Moment, Policy,
    Promises, Resources, ScaleDown, ShrinkCpu, Target, VmInfo, VmName,
};
use windlass_scaling::stabilization::{Held, LONGEST_DAMPED, Move, SETTLES_FOR, Settling};
use windlass_scaling::{Inputs, Loads, Sample, StabilizedGoal, Stabilizer, goal};

#[test]
fn a_goal_that_signals_lowered_waits_and_growth_does_not() {
    let mut vm = Vm::of(1, 60);
    vm.at(0).load(3.6);
    assert_eq!(vm.stabilized(), cu(4), "growth is at once");
    vm.has = cu(4);
    vm.at(30).load(0.1);
    vm.at(89).load(0.1);
    assert_eq!(vm.stabilized(), cu(4), "the last moment of the hold");
    let held = vm.all().held;
    assert_eq!(held, Some(Held { size: cu(1), until: Some(at(90)) }));
    assert_eq!(vm.all().goal.reason.cpu, Some(Clip::Held));
    vm.at(90).load(0.1);
    assert_eq!((vm.stabilized(), vm.all().held), (cu(1), None));
    vm.has = cu(3);
    vm.at(95).load(0.1);
    assert_eq!(vm.stabilized(), cu(1), "a further step does not wait again");
}

#[test]
fn load_that_comes_back_within_the_hold_begins_it_anew() {
    let mut vm = Vm::of(2, 60);
    for (second, load, goal) in
        [(0, 1.8, 2), (10, 0.1, 2), (50, 1.8, 2), (60, 0.1, 2), (119, 0.1, 2), (120, 0.1, 1)]
    {
        vm.at(second).load(load);
        assert_eq!(vm.stabilized(), cu(goal), "after {second} s");
    }
}

#[test]
fn a_goal_of_the_past_makes_no_vm_grow() {
    let mut vm = Vm::of(1, 60);
    vm.at(0).load(3.6);
    // The node had no room, and the load is over.
    vm.at(5).load(0.1);
    assert_eq!(vm.stabilized(), cu(1));
    vm.has = cu(2);
    assert_eq!(vm.stabilized(), cu(2), "what it has it keeps");
}

#[test]
fn a_lower_maximum_and_what_the_books_take_back_do_not_wait() {
    let mut vm = Vm::of(4, 60);
    vm.at(0).load(3.6);
    vm.at(10).load(0.1);
    assert_eq!(vm.stabilized(), cu(4));
    vm.permit = Some(cu(3));
    assert_eq!(vm.stabilized(), cu(3));
    vm.info.bounds.max = cu(2);
    assert_eq!(vm.stabilized(), cu(2));
}

#[test]
fn a_start_counts_as_a_goal_of_all_that_it_has() {
    let mut vm = Vm::of(3, 60);
    vm.rest.keep(at(0));
    vm.at(1).load(0.1);
    assert_eq!(vm.stabilized(), cu(3));
    vm.at(60).load(0.1);
    assert_eq!(vm.stabilized(), cu(1));
}

#[test]
fn missing_figures_count_as_a_goal_of_all_that_it_has() {
    let mut vm = Vm::of(3, 60);
    vm.at(0).load(0.1);
    vm.at(100).load(0.1);
    assert_eq!(vm.stabilized(), cu(1), "it was idle for long");
    vm.load = None;
    vm.at(101).note();
    vm.at(102).load(0.1);
    vm.at(161).load(0.1);
    assert_eq!(vm.stabilized(), cu(3));
    vm.at(162).load(0.1);
    assert_eq!(vm.stabilized(), cu(1));
}

#[test]
fn each_axis_has_its_own_hold_and_zero_is_none() {
    let mut vm = Vm::of(4, 60);
    vm.info.scale_down.memory = Duration::ZERO;
    vm.at(0).load(3.6);
    vm.at(1).load(0.1);
    assert_eq!(vm.stabilized(), Resources { cpu: cu(4).cpu, mem: cu(1).mem });
    let reason = vm.all().goal.reason;
    assert_eq!((reason.cpu, reason.mem), (Some(Clip::Held), None));
    vm.info.scale_down = ScaleDown::AT_ONCE;
    assert_eq!((vm.stabilized(), vm.all().held), (cu(1), None));
}

#[test]
fn load_at_the_rounding_point_moves_nothing() {
    // At a target of 0.9 a load of 1.35 is one unit and a half.
    for (load, has, goal) in
        [(1.34, 1, 1), (1.36, 1, 2), (1.34, 2, 2), (1.13, 2, 2), (1.12, 2, 1), (0.2, 2, 1)]
    {
        let mut vm = Vm::of(has, 1);
        for second in 0..10 {
            vm.at(second).load(load);
        }
        assert_eq!(vm.stabilized(), cu(goal), "{load} with {has}");
        let held = vm.all().held;
        let near = Held { size: cu(1), until: None };
        assert_eq!(held, (goal == has && has == 2 && load < 1.35).then_some(near), "{load}");
    }
}

#[test]
fn load_that_returning_memory_makes_is_not_followed() {
    let loads = |five, fifteen| (Some(five), Some(fifteen));
    for (stopped, second, (five, fifteen), goal) in [
        // Memory leaves: two tasks more than the VM has are its own.
        (None, 0, loads(2.0, 2.0), 1),
        (None, 0, loads(4.0, 4.0), 2),
        // It has left: until the load over 5 s is clean, the same.
        (Some(0), 4, loads(2.0, 2.0), 1),
        (Some(0), 5, loads(0.1, 2.0), 1),
        (Some(0), 5, loads(2.0, 2.0), 2),
        (Some(0), 5, loads(1.8, 2.7), 2),
        (Some(0), 14, loads(0.1, 1.5), 1),
        // The load over 15 s is clean.
        (Some(0), 15, loads(0.1, 1.8), 2),
    ] {
        let mut vm = Vm::of(1, 60);
        vm.rest.memory_leaves(at(0), true);
        if let Some(stopped) = stopped {
            vm.rest.memory_leaves(at(stopped), false);
        }
        (vm.five, vm.load) = (five, fifteen);
        vm.at(second).note();
        assert_eq!(
            vm.stabilized(),
            cu(goal),
            "{five:?} and {fifteen:?}, {second} s after {stopped:?}"
        );
        assert_eq!(vm.all().goal.signals.load, fifteen, "what was measured is said");
        let until = stopped.map(|stopped| at(stopped).after(SETTLES_FOR));
        let lowered = goal::goal(&vm.inputs(&vm.sample())).size != cu(goal);
        assert_eq!(vm.all().settling, lowered.then_some(Settling { until }));
    }
}

#[test]
fn settling_grows_no_vm_between_two_units() {
    // Two vCPUs a unit: a load of three vCPUs' worth is one unit and a half, which rounds up.
    let mut vm = Vm::of(3, 60);
    vm.unit = cu(2);
    vm.rest.memory_leaves(at(0), true);
    for load in [2.7, 3.6] {
        vm.load = Some(load);
        vm.at(0).note();
        assert!(vm.stabilized().cpu <= cu(3).cpu, "{load}: {}", vm.stabilized());
    }
}

#[test]
fn a_longer_window_settles_for_as_long_as_it_is() {
    let mut vm = Vm::of(1, 60);
    vm.info.load_window = LoadWindow::OneMinute;
    vm.rest.memory_leaves(at(0), true);
    vm.rest.memory_leaves(at(1), false);
    vm.five = Some(0.1);
    for (second, goal) in [(20, 1), (60, 1), (61, 2)] {
        vm.minute = Some(1.8);
        vm.at(second).note();
        assert_eq!(vm.stabilized(), cu(goal), "after {second} s");
    }
}

#[test]
fn a_vm_that_flaps_is_held_for_longer_and_forgiven_after_an_hour() {
    let mut vm = Vm::of(2, 60);
    let mut second = 0;
    for reversal in 1..=12 {
        vm.rest.cpu_moved(at(second), Move::Shrank);
        vm.rest.cpu_moved(at(second + 90), Move::Grew);
        // Growth that did not get through at once is no second one.
        vm.rest.cpu_moved(at(second + 91), Move::Grew);
        second += 100;
        let flapping = vm.rest.flapping(at(second), vm.info.scale_down);
        let hold = match reversal {
            ..=6 => None,
            7 => Some(120),
            8 => Some(240),
            9 => Some(480),
            _ => Some(LONGEST_DAMPED.as_secs()),
        };
        assert_eq!(flapping.map(|flapping| flapping.hold.as_secs()), hold, "{reversal} reversals");
    }
    vm.at(second).load(1.8);
    vm.at(second + 10).load(0.1);
    vm.at(second + 609).load(0.1);
    assert_eq!(vm.stabilized().cpu, cu(2).cpu);
    vm.at(second + 610).load(0.1);
    assert_eq!(vm.stabilized().cpu, cu(1).cpu);
    assert_eq!(vm.rest.flapping(at(second + 3600), vm.info.scale_down), None);
    // There were six after the reversal at 590 s, which counts for an hour.
    let counted = |now| vm.rest.flapping(at(now), vm.info.scale_down).map(|said| said.reversals);
    assert_eq!((counted(590 + 3599), counted(590 + 3600)), (Some(7), None));
    assert_eq!(vm.rest.flapping(at(second), ScaleDown::AT_ONCE), None, "nothing is held");
}

#[test]
fn growth_long_after_a_shrink_is_no_reversal() {
    let mut vm = Vm::of(2, 60);
    for turn in 0..20 {
        vm.rest.memory_moved(at(turn * 700), Move::Shrank);
        vm.rest.memory_moved(at(turn * 700 + 600), Move::Grew);
    }
    assert_eq!(vm.rest.flapping(at(14_000), vm.info.scale_down), None);
}

proptest! {
    /// Beside a plain list of all goals.
    #[test]
    fn what_counts_is_the_largest_goal_of_the_hold_within_what_it_has(
        steps in vec((1_u64..40, 0_u32..50, 1_u64..5), 1..60),
        hold in 1_u64..100,
    ) {
        let mut vm = Vm::of(1, hold);
        let (mut second, mut goals) = (0, Vec::new());
        for (passed, tenths, has) in steps {
            second += passed;
            vm.has = cu(has);
            vm.at(second).load(f64::from(tenths) / 10.0);
            let called_for = goal::goal(&vm.inputs(&vm.sample())).size;
            goals.push((second, vm.with_margin()));
            // A goal counts until the next one takes its place.
            let ends = goals.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
            let recent = goals.iter().zip(ends).filter(|(_, end)| second < end.saturating_add(hold));
            let most = recent.map(|((_, goal), _)| *goal).fold(Resources::ZERO, Resources::max);
            prop_assert_eq!(vm.stabilized(), called_for.max(most.min(cu(has))));
        }
    }

    /// Whatever it remembers: a goal is raised to what the VM has at most, and never lowered but
    /// while memory leaves.
    #[test]
    fn it_only_keeps(
        steps in vec((0_u64..400, 0_u32..80, 1_u64..5, 0_u8..8), 1..60),
        hold in 0_u64..700,
    ) {
        let mut vm = Vm::of(1, hold);
        let mut second = 0;
        for (passed, tenths, has, event) in steps {
            second += passed;
            vm.has = cu(has);
            match event {
                0 => vm.rest.cpu_moved(at(second), Move::Shrank),
                1 => vm.rest.cpu_moved(at(second), Move::Grew),
                2 => vm.rest.keep(at(second)),
                3 => vm.rest.memory_leaves(at(second), true),
                4 => vm.rest.memory_leaves(at(second), false),
                _ => {}
            }
            vm.at(second).load(f64::from(tenths) / 10.0);
            let plain = goal::goal(&vm.inputs(&vm.sample())).size;
            let all = vm.all();
            let size = all.goal.size;
            prop_assert!(plain.max(cu(has)).covers(size), "{size}");
            prop_assert!(all.settling.is_some() || size.covers(plain), "{size} of {plain}");
            prop_assert!(hold > 0 || size == plain);
            let later = |at: &Moment| *at > vm.now;
            let due = vm.rest.deadlines(vm.now, &vm.info).filter(later).min();
            if let Some(until) = all.held.and_then(|held| held.until) {
                prop_assert!(due.is_some_and(|due| due <= until), "nobody would look then");
            }
        }
    }
}

/// A VM, and what its signals say.
struct Vm {
    rest: Stabilizer,
    info: VmInfo,
    has: Resources,
    permit: Option<Resources>,
    now: Moment,
    load: Option<f64>,
    five: Option<f64>,
    minute: Option<f64>,
    unit: Resources,
}

impl Vm {
    /// With so many units, and a hold of so many seconds.
    fn of(has: u64, hold: u64) -> Self {
        let hold = Duration::from_secs(hold);
        let info = VmInfo { scale_down: ScaleDown { cpu: hold, memory: hold }, ..info() };
        let (rest, permit, now) = (Stabilizer::default(), None, at(0));
        Self {
            rest,
            info,
            has: cu(has),
            permit,
            now,
            load: None,
            five: None,
            minute: None,
            unit: cu(1),
        }
    }

    fn at(&mut self, second: u64) -> &mut Self {
        self.now = at(second);
        self
    }

    fn load(&mut self, load: f64) {
        self.load = Some(load);
        self.note();
    }

    fn note(&mut self) {
        let (mut rest, sample) = (self.rest.clone(), self.sample());
        rest.note(self.now, &self.inputs(&sample));
        self.rest = rest;
    }

    fn stabilized(&self) -> Resources {
        self.all().goal.size
    }

    fn all(&self) -> StabilizedGoal {
        self.rest.stabilized(self.now, &self.inputs(&self.sample()), self.permit)
    }

    /// The goal with a quarter of a unit more load.
    fn with_margin(&self) -> Resources {
        let mut sample = self.sample();
        sample.loads.fifteen_seconds = self.load.map(|load| load + 0.25 * 0.9);
        goal::goal(&self.inputs(&sample)).size
    }

    fn sample(&self) -> Sample {
        let loads = Loads {
            five_seconds: self.five,
            fifteen_seconds: self.load,
            one_minute: self.minute,
            ..Loads::default()
        };
        let (total, available) = (Some(self.has.mem), Some(self.has.mem));
        Sample { loads, total, available, ..Sample::empty(self.now) }
    }

    fn inputs<'a>(&'a self, sample: &'a Sample) -> Inputs<'a> {
        const CAN: Capabilities = Capabilities {
            cpu_step: MilliCpu::from_cores(1),
            limit_step: None,
            memory_step: Bytes::from_mib(128),
            shrink_cpu: ShrinkCpu::Parking,
            shrink_memory: true,
            promises: Promises::IN_ORDER,
            min: cu(1),
            max: cu(4),
        };
        Inputs {
            info: &self.info,
            unit: ComputeUnit::new(self.unit.cpu, self.unit.mem).unwrap(),
            can: &CAN,
            sample: Some(sample),
            has: self.has,
            urgency: None,
        }
    }
}

/// So many vCPUs, with a GiB each.
const fn cu(count: u64) -> Resources {
    Resources::new(MilliCpu::from_cores(count), Bytes::from_gib(count))
}

fn at(second: u64) -> Moment {
    Moment::from_millis(1_000_000 + second * 1000)
}

fn info() -> VmInfo {
    VmInfo {
        name: VmName::on_host("a"),
        bounds: Bounds { min: cu(1), max: cu(4) },
        target: Target::default(),
        policy: Policy::LoadAverage,
        load_window: LoadWindow::FifteenSeconds,
        priority: 0,
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::default(),
        cpu_limit: None,
    }
}
