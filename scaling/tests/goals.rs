//! The arithmetic of goals, as tables: worked examples of the reference, and what is absurd.
#![expect(clippy::unwrap_used, reason = "tests")]

use windlass_protocol::{
    Bounds, Bytes, Capabilities, Clip, ComputeUnit, LoadWindow, MilliCpu, Mode, Moment, Policy,
    Promises, Resources, ScaleDown, ShrinkCpu, Signal, Target, VmInfo, VmName,
};
use windlass_scaling::{Goal, Inputs, Loads, Sample, Urgency, goal, load, memory};

const NOW: Moment = Moment::from_millis(1_000);

#[test]
fn a_compute_unit_is_not_a_vcpu() {
    // The reference's bug #421: at a quarter vCPU per unit, 3.6 of load at 0.9 needs 16 units.
    let unit = ComputeUnit::new(MilliCpu::from_milli(250), Bytes::from_gib(1)).unwrap();
    for (value, target, units) in
        [(3.6, 0.9, 16.0), (0.8, 0.9, 3.56), (0.6, 0.9, 2.67), (0.1, 0.9, 0.44), (0.0, 0.9, 0.0)]
    {
        let got = load::units(Some(value), target, unit).unwrap();
        assert!((got - units).abs() < 0.01, "{value} at {target}: {got}, not {units}");
    }
    for absurd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1e300] {
        assert_eq!(load::units(Some(absurd), 0.9, unit), None, "{absurd}");
    }
}

#[test]
fn the_larger_count_sets_both_axes_and_each_is_clamped() {
    for (given, size, signal) in [
        // load, MiB used: vCPUs, MiB; who won
        ((Some(0.0), Some(40)), (1, 256), Signal::Idle),
        // Load is rounded to the nearest count: 1.33, 1.61 and 3.4 of them.
        ((Some(1.2), Some(40)), (1, 256), Signal::Idle),
        ((Some(1.45), Some(40)), (2, 512), Signal::Load),
        ((Some(3.06), Some(40)), (3, 768), Signal::Load),
        ((Some(1.8), Some(40)), (2, 512), Signal::Load),
        ((Some(2.3), Some(40)), (3, 768), Signal::Load),
        ((Some(9.0), Some(40)), (4, 1024), Signal::Load),
        ((Some(0.2), Some(100)), (2, 512), Signal::Memory),
        ((Some(0.2), Some(300)), (3, 768), Signal::Memory),
        ((Some(2.3), Some(100)), (3, 768), Signal::Load),
    ] {
        let goal = goal_of(given, (1, 256), None);
        assert_eq!((goal.size, goal.reason.signal), (vm_size(size), signal), "{given:?}");
    }
    let most = goal_of((Some(9.0), Some(40)), (1, 256), None);
    assert_eq!((most.reason.cpu, most.reason.mem), (Some(Clip::Maximum), Some(Clip::Maximum)));
    let least = goal_of((Some(0.0), Some(0)), (2, 512), None);
    assert_eq!(least.size, vm_size((1, 256)));
}

/// The unit is 256 MiB and the slot 128 MiB: what memory calls for by itself is in whole slots.
#[test]
fn an_axis_that_whole_units_made_larger_says_so() {
    let unit = Some(Clip::Unit);
    for (given, size, clips) in [
        // load, MiB used: vCPUs, MiB; what clipped CPU and memory
        ((Some(2.7), Some(40)), (3, 768), (None, unit)),
        ((Some(0.2), Some(100)), (2, 512), (unit, unit)),
        ((Some(0.2), Some(200)), (2, 512), (unit, None)),
        ((Some(1.8), Some(200)), (2, 512), (None, None)),
        ((Some(0.0), Some(10)), (1, 256), (None, None)),
        ((None, Some(200)), (2, 512), (unit, None)),
    ] {
        let goal = goal_of(given, (1, 256), None);
        let got = (goal.reason.cpu, goal.reason.mem);
        assert_eq!((goal.size, got), (vm_size(size), clips), "{given:?}");
    }
    let urgency = Urgency { base: vm_size((1, 256)), cpu: true, mem: false };
    let urgent = goal_of((Some(0.0), Some(40)), (1, 256), Some(urgency));
    assert_eq!((urgent.reason.cpu, urgent.reason.mem), (None, unit));
}

#[test]
fn what_is_missing_never_shrinks_a_vm_and_growth_goes_on() {
    let (missing, unit) = (Some(Clip::Missing), Some(Clip::Unit));
    for (given, has, size, signal, clips) in [
        ((None, Some(40)), (3, 768), (3, 768), Signal::Missing, (missing, missing)),
        ((Some(0.0), None), (3, 768), (3, 768), Signal::Missing, (missing, missing)),
        ((None, None), (3, 768), (3, 768), Signal::Missing, (missing, missing)),
        ((Some(f64::NAN), Some(40)), (3, 768), (3, 768), Signal::Missing, (missing, missing)),
        // An axis that has as much as is called for is not held.
        ((Some(0.9), None), (1, 768), (1, 768), Signal::Missing, (None, missing)),
        ((None, Some(200)), (3, 512), (3, 512), Signal::Missing, (missing, None)),
        ((Some(2.7), None), (1, 256), (3, 768), Signal::Load, (None, unit)),
        ((None, Some(300)), (1, 256), (3, 768), Signal::Memory, (unit, unit)),
    ] {
        let goal = goal_of(given, has, None);
        assert_eq!((goal.size, goal.reason.signal), (vm_size(size), signal), "{given:?}");
        assert_eq!((goal.reason.cpu, goal.reason.mem), clips, "{given:?}");
    }
}

#[test]
fn a_shorter_window_may_grow_a_vm_and_shrinks_none() {
    use LoadWindow::{FifteenSeconds as Fifteen, FiveSeconds as Five, OneMinute as Minute};
    for (window, [five, fifteen, minute], units, over, signal) in [
        // The VM has 2 units.
        (Fifteen, [Some(3.6), None, None], 4, Some(Five), Signal::Load),
        (Fifteen, [Some(0.0), None, None], 2, Some(Five), Signal::Missing),
        (Fifteen, [Some(3.6), Some(0.0), None], 1, None, Signal::Idle),
        (Fifteen, [Some(0.0), Some(3.6), None], 4, None, Signal::Load),
        // A longer window says nothing for a shorter one.
        (Fifteen, [None, None, Some(3.6)], 2, None, Signal::Missing),
        (Five, [None, Some(3.6), Some(3.6)], 2, None, Signal::Missing),
        // The longest that has one.
        (Minute, [Some(0.0), Some(3.6), None], 4, Some(Fifteen), Signal::Load),
        (Minute, [Some(3.6), None, None], 4, Some(Five), Signal::Load),
        (Minute, [Some(3.6), Some(3.6), Some(0.0)], 1, None, Signal::Idle),
        // What is absurd is missing.
        (Fifteen, [Some(3.6), Some(1e300), None], 4, Some(Five), Signal::Load),
        (Fifteen, [Some(1e300), None, None], 2, Some(Five), Signal::Missing),
    ] {
        let loads = Loads {
            five_seconds: five,
            fifteen_seconds: fifteen,
            one_minute: minute,
            five_minutes: None,
        };
        let info = VmInfo { load_window: window, ..info() };
        let goal = goal_by(&info, loads, Some(40), (2, 512), None);
        let size = vm_size((units, 256 * units));
        let given = format!("{window}: {five:?} {fifteen:?} {minute:?}");
        assert_eq!((goal.size, goal.reason.signal), (size, signal), "{given}");
        assert_eq!(goal.signals.over, over, "{given}");
    }
}

#[test]
fn a_goal_says_which_window_spoke() {
    let loads = Loads { five_seconds: Some(3.6), ..Loads::default() };
    let goal = goal_by(&info(), loads, Some(40), (2, 512), None);
    let words = goal.signals.describe(info().load_window);
    assert_eq!(words, "load 3.60 over 5s, none over 15s yet, 40MiB of 800MiB used");
}

#[test]
fn memory_figures_that_make_no_sense_together_are_missing() {
    let mib = |mib: u64| Some(Bytes::from_mib(mib));
    for (total, available, used) in [
        (mib(800), mib(760), mib(40)),
        (mib(800), mib(800), mib(0)),
        (mib(800), mib(801), None),
        (mib(0), mib(0), None),
        (Some(Bytes::from_bytes(u64::MAX)), mib(1), None),
        (mib(800), None, None),
        (None, mib(760), None),
    ] {
        let sample = Sample { total, available, ..Sample::empty(NOW) };
        assert_eq!(memory::used(&sample), used, "{available:?} of {total:?}");
    }
}

#[test]
fn a_call_for_more_is_one_unit_above_what_it_had() {
    let call = |cpu, mem| Some(Urgency { base: vm_size((2, 512)), cpu, mem });
    for (urgency, size, signal) in [
        (call(false, true), (3, 768), Signal::Urgent),
        (call(true, false), (3, 768), Signal::Urgent),
        (call(false, false), (1, 256), Signal::Idle),
        (None, (1, 256), Signal::Idle),
    ] {
        let goal = goal_of((Some(0.0), Some(40)), (2, 512), urgency);
        assert_eq!((goal.size, goal.reason.signal), (vm_size(size), signal), "{urgency:?}");
    }
}

#[test]
fn sizes_are_in_the_grain_of_slot_and_driver() {
    let mib = Bytes::from_mib;
    for (boot, step, slot, wanted, max, size) in [
        (256, 2, 128, 300, 1024, 384),
        (200, 2, 128, 300, 1024, 384),
        (200, 128, 128, 300, 1024, 456),
        (256, 2, 128, 5000, 1024, 1024),
        (256, 128, 128, 1000, 1000, 896),
        (256, 2, 128, 10, 1024, 256),
    ] {
        let mut can = can();
        can.min.mem = mib(boot);
        can.memory_step = mib(step);
        let max = Resources::new(MilliCpu::from_cores(4), mib(max));
        let wanted = Resources::new(MilliCpu::from_milli(1500), mib(wanted));
        let got = goal::in_grain(wanted, &can, mib(slot), max);
        assert_eq!(got, Resources::new(MilliCpu::from_cores(2), mib(size)), "{wanted}");
    }
}

fn goal_of(
    (load, used): (Option<f64>, Option<u64>),
    has: (u64, u64),
    urgency: Option<Urgency>,
) -> Goal {
    let loads = Loads { fifteen_seconds: load, ..Loads::default() };
    goal_by(&info(), loads, used, has, urgency)
}

fn goal_by(
    info: &VmInfo,
    loads: Loads,
    used: Option<u64>,
    has: (u64, u64),
    urgency: Option<Urgency>,
) -> Goal {
    let sample = Sample {
        at: NOW,
        loads,
        total: used.map(|_| Bytes::from_mib(800)),
        available: used.map(|used| Bytes::from_mib(800 - used)),
        online: None,
        reach: None,
        by_minutes: false,
    };
    goal::goal(&Inputs {
        info,
        unit: ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_mib(256)).unwrap(),
        can: &can(),
        sample: Some(&sample),
        has: vm_size(has),
        urgency,
    })
}

fn vm_size((cores, mib): (u64, u64)) -> Resources {
    Resources::new(MilliCpu::from_cores(cores), Bytes::from_mib(mib))
}

fn info() -> VmInfo {
    VmInfo {
        name: VmName::on_host("a"),
        bounds: Bounds { min: vm_size((1, 256)), max: vm_size((4, 1024)) },
        target: Target::default(),
        policy: Policy::LoadAverage,
        load_window: LoadWindow::FifteenSeconds,
        priority: 0,
        mode: Mode::Act,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        paused_until: None,
        scale_down: ScaleDown::AT_ONCE,
        cpu_limit: None,
    }
}

fn can() -> Capabilities {
    Capabilities {
        cpu_step: MilliCpu::from_cores(1),
        limit_step: None,
        memory_step: Bytes::from_mib(2),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: vm_size((1, 256)),
        max: vm_size((8, 4096)),
    }
}
