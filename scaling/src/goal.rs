//! The goal: the size that the signals call for, within the bounds, with its reason.
//!
//! As in the reference, the larger count of whole compute units sets both axes, and the bounds clamp each
//! axis. Law 5, missing is not zero: while a signal is missing, the goal is never below the VM's size, but the
//! other signals can still make the VM grow.
//!
//! A window has no figure before the guest was measured for its length. Until then load counts as missing,
//! but load over the next shorter window may make the VM grow.

use crate::{Sample, load, memory};
use windlass_protocol::{
    Bytes, Capabilities, Clip, ComputeUnit, LoadWindow, MilliCpu, Reason, Resources, Signal,
    Signals, VmInfo,
};

/// The inputs of a goal.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Bounds, target and policy of the VM.
    pub info: &'a VmInfo,
    /// The compute unit.
    pub unit: ComputeUnit,
    /// The abilities of the driver.
    pub can: &'a Capabilities,
    /// The newest sample, unless it is stale.
    pub sample: Option<&'a Sample>,
    /// The VM's size.
    pub has: Resources,
    /// An urgent request of the guest, unless it has expired.
    pub urgency: Option<Urgency>,
}

/// An urgent request of the guest for more than it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// The VM's size at the request.
    pub base: Resources,
    /// The guest needs vCPUs.
    pub cpu: bool,
    /// The guest needs memory.
    pub mem: bool,
}

/// The desired size of a VM, with its reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The size, within the bounds, in whole steps of the driver and whole slots.
    pub size: Resources,
    /// The signal that won, and the limits that clipped it.
    pub reason: Reason,
    /// The available signals.
    pub signals: Signals,
}

/// Computes the goal of one VM.
pub fn goal(inputs: &Inputs<'_>) -> Goal {
    let Inputs { info, unit, sample, .. } = *inputs;
    let load = load_of(inputs);
    let signals = Signals {
        load: load.figure,
        over: load.over,
        used: sample.and_then(memory::used),
        total: sample.and_then(|sample| sample.total),
    };
    let by_load = load.units;
    let by_memory = signals.used.map(|used| memory::units(used, info.target.memory, unit));
    let complete = by_load.is_some() && load.over.is_none() && by_memory.is_some();

    // The reference rounds load to the nearest count and lets memory round up.
    let load_count = whole(by_load.map_or(0.0, f64::round));
    let memory_count = whole(by_memory.unwrap_or(0.0));
    let urgent_count = inputs.urgency.map_or(0, |urgency| urgency.units(unit));
    let count = load_count.max(memory_count).max(urgent_count);

    let mut clips = [None, None];
    let mut size = unit.times(count);
    if !complete {
        size = clipped(size, size.max(inputs.has), Clip::Missing, &mut clips);
    }
    let wanted = size;
    size = clamped(size, inputs, &mut clips);
    let own = own_needs(by_load, by_memory, inputs.urgency, unit);
    raised_by_unit(size, clamped(own, inputs, &mut [None; 2]), &mut clips);
    let signal = if !complete && wanted != unit.times(count) {
        Signal::Missing
    } else if urgent_count > load_count.max(memory_count) {
        Signal::Urgent
    } else if unit.times(count).max(info.bounds.min) == info.bounds.min {
        Signal::Idle
    } else if load_count >= memory_count {
        Signal::Load
    } else {
        Signal::Memory
    };
    Goal { size, reason: Reason { signal, cpu: clips[0], mem: clips[1] }, signals }
}

/// The largest possible goal.
pub fn most(inputs: &Inputs<'_>) -> Resources {
    let Inputs { info, can, .. } = *inputs;
    let most = info.bounds.max.max(can.min).min(can.max);
    in_grain(most, can, info.memory_slot, info.bounds.max)
}

/// The needs of each axis by itself, before rounding to whole units.
fn own_needs(
    by_load: Option<f64>,
    by_memory: Option<f64>,
    urgency: Option<Urgency>,
    unit: ComputeUnit,
) -> Resources {
    let by_load = whole(by_load.unwrap_or(0.0) * figure(unit.cpu().milli()));
    let by_memory = whole(by_memory.unwrap_or(0.0) * figure(unit.mem().bytes()));
    let own = Resources::new(MilliCpu::from_milli(by_load), Bytes::from_bytes(by_memory));
    urgency.map_or(own, |urgency| {
        let urgent = unit.times(urgency.units(unit));
        let cpu = if urgency.cpu { urgent.cpu } else { MilliCpu::ZERO };
        let mem = if urgency.mem { urgent.mem } else { Bytes::ZERO };
        own.max(Resources { cpu, mem })
    })
}

/// Marks each unclipped axis that is larger than its own needs as raised by whole units.
fn raised_by_unit(size: Resources, own: Resources, clips: &mut [Option<Clip>; 2]) {
    let raised = [size.cpu > own.cpu, size.mem > own.mem];
    for (clip, raised) in clips.iter_mut().zip(raised) {
        if raised && clip.is_none() {
            *clip = Some(Clip::Unit);
        }
    }
}

/// Rounds a size up to the steps of driver and slot, but never above the bounds or the driver's maximum.
pub fn in_grain(size: Resources, can: &Capabilities, slot: Bytes, max: Resources) -> Resources {
    let (max, grain) = (max.min(can.max), can.cpu_grain());
    let cpu = size.cpu.round_up(grain).min(max.cpu.round_down(grain)).max(can.min.cpu);
    let boot = can.min.mem;
    let above = size.mem.round_up(slot).saturating_sub(boot).round_up(can.memory_step);
    let most = max.mem.saturating_sub(boot).round_down(can.memory_step);
    Resources { cpu, mem: boot.saturating_add(above.min(most)) }
}

/// The load and its needs.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    figure: Option<f64>,
    /// The window of the figure, if it is shorter than the VM's.
    over: Option<LoadWindow>,
    /// The compute units that it calls for.
    units: Option<f64>,
}

/// Load over the VM's window, or else over the next shorter window with a figure.
fn load_of(inputs: &Inputs<'_>) -> Load {
    let Some(sample) = inputs.sample else { return Load::default() };
    let (window, target) = (inputs.info.load_window, inputs.info.target.load_average);
    let units = |figure| load::units(figure, target, inputs.unit);
    let figure = sample.loads.over(window);
    let own = Load { figure, over: None, units: units(figure) };
    match sample.loads.shorter(window) {
        Some((over, load)) if own.units.is_none() => {
            Load { figure: Some(load), over: Some(over), units: units(Some(load)) }
        }
        Some(_) | None => own,
    }
}

/// Marks each axis on which `next` differs from `size`; returns `next`.
fn clipped(
    size: Resources,
    next: Resources,
    clip: Clip,
    clips: &mut [Option<Clip>; 2],
) -> Resources {
    if next.cpu != size.cpu {
        clips[0] = Some(clip);
    }
    if next.mem != size.mem {
        clips[1] = Some(clip);
    }
    next
}

fn clamped(size: Resources, inputs: &Inputs<'_>, clips: &mut [Option<Clip>; 2]) -> Resources {
    let (bounds, can) = (inputs.info.bounds, inputs.can);
    let limits = [
        (Clip::Minimum, bounds.min, true),
        (Clip::Maximum, bounds.max, false),
        (Clip::DriverMinimum, can.min, true),
        (Clip::DriverMaximum, can.max, false),
    ];
    let mut size = size;
    for (clip, limit, raises) in limits {
        let next = if raises { size.max(limit) } else { size.min(limit) };
        size = clipped(size, next, clip, clips);
    }
    in_grain(size, can, inputs.info.memory_slot, bounds.max)
}

#[expect(clippy::cast_precision_loss, reason = "a rounding error of a byte is no matter")]
fn figure(amount: u64) -> f64 {
    amount as f64
}

/// A figure, rounded up; saturating.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, and a negative or NaN count is none"
)]
fn whole(units: f64) -> u64 {
    units.ceil() as u64
}

// === impl Urgency ===

impl Urgency {
    /// One whole unit above the VM's size at the request.
    fn units(self, unit: ComputeUnit) -> u64 {
        let above = |wanted: bool, count: u64| if wanted { count.saturating_add(1) } else { 0 };
        let cpu = above(self.cpu, self.base.cpu.whole(unit.cpu()));
        let mem = above(self.mem, self.base.mem.whole(unit.mem()));
        cpu.max(mem)
    }
}
