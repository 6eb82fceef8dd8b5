//! Why a VM does not have more, and why it does not have less.

use super::room::holders;
use super::waiting::{MEMORY_STAYS, waiting, without_session};
use super::words::{by_units, capital, list};
use crate::api::Explained;
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Clip, MilliCpu, Reason, Resources, Signal, Signals, Waiting};

/// The field of `min` and `max` in a file.
const CPU: &str = "cpu";

/// A limit that Windlass did not set is rounded down to this.
const LIMIT_STEP: MilliCpu = MilliCpu::from_milli(50);

/// What a reason to wait keeps a VM from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    All,
    Growing,
    Shrinking,
    /// From what it is about to do.
    Going,
    Nothing,
}

/// Each a heading and what stands below it: `Why not more`, `Why not less`, or both in one.
pub(super) fn why(explained: &Explained) -> Vec<(&'static str, String)> {
    let Some(vm) = &explained.status else { return Vec::new() };
    let said = |wanted: &[Keeps]| -> Vec<String> {
        let of = |why: &&Waiting| wanted.contains(&keeps(why));
        vm.waiting.iter().filter(of).map(|why| waiting(why, vm, explained.at)).collect()
    };
    let mut all = said(&[Keeps::All]);
    if vm.session == SessionState::Suspended {
        all.push(without_session(vm.session, MEMORY_STAYS));
    }
    if vm.goal == uses(vm) && vm.signals == Signals::default() {
        // Without a figure it neither grows nor shrinks, unless the guest calls for more.
        all.extend(said(&[Keeps::Shrinking]));
    }
    if !all.is_empty() {
        return vec![("Why it does not change", all.join(" "))];
    }
    let (Some(goal), Some(has)) = (vm.goal, uses(vm)) else {
        return vec![("Why it does not change", said(&[Keeps::Going]).join(" "))];
    };
    let mut more = Vec::new();
    if has.covers(goal) {
        more.extend(said(&[Keeps::Growing]));
        if more.is_empty() {
            more.extend(no_call_for_more(vm));
        }
    } else {
        more.extend(said(&[Keeps::Growing, Keeps::Going]));
        for why in &vm.waiting {
            if let Waiting::Room { wanted, permit } = why {
                more.extend(holders(explained, *wanted, *permit));
            }
        }
        if more.is_empty() {
            more.push("It is growing.".to_owned());
        }
    }
    let mut less = said(&[Keeps::Shrinking]);
    if goal.covers(has) {
        let own = no_call_for_less(vm);
        if !own.is_empty() {
            less.insert(0, own);
        }
    } else {
        if has.covers(goal) {
            less.extend(said(&[Keeps::Going]));
        }
        less.extend(refusal(explained));
        if less.is_empty() {
            less.push("It is shrinking.".to_owned());
        }
    }
    vec![("Why not more", more.join(" ")), ("Why not less", less.join(" "))]
}

/// What the VM uses: vCPUs without the parked ones, and the memory that it may have.
pub(super) fn uses(vm: &VmStatus) -> Option<Resources> {
    Some(Resources { cpu: vm.cpu()?, mem: vm.upper?.mem })
}

const fn keeps(waiting: &Waiting) -> Keeps {
    match waiting {
        Waiting::AtGoal => Keeps::Nothing,
        Waiting::FirstSignals
        | Waiting::HypervisorLost
        | Waiting::Frozen
        | Waiting::Move
        | Waiting::Paused { .. }
        | Waiting::Stopped { .. }
        | Waiting::Observing => Keeps::All,
        Waiting::Session
        | Waiting::Plugin
        | Waiting::Room { .. }
        | Waiting::HostMemory { .. }
        | Waiting::Settling { .. }
        | Waiting::Guest => Keeps::Growing,
        Waiting::Signals { .. }
        | Waiting::Informant
        | Waiting::Refused { .. }
        | Waiting::Holding { .. }
        | Waiting::Flapping { .. }
        | Waiting::Consent
        | Waiting::Unplug { .. }
        | Waiting::StuckUnplug { .. }
        | Waiting::Reboot
        | Waiting::Window { .. } => Keeps::Shrinking,
        Waiting::Hypervisor | Waiting::NoEffect { .. } => Keeps::Going,
    }
}

/// The guest's own words, where it declined what is under way.
fn refusal(explained: &Explained) -> Option<String> {
    let consent = explained.open.as_ref()?.consent.as_ref()?;
    let words = consent.status.trim();
    (!consent.agreed && !words.is_empty()).then(|| format!("Its words: “{words}”."))
}

/// What keeps the goal from being larger.
fn no_call_for_more(vm: &VmStatus) -> Option<String> {
    let (goal, reason) = (vm.goal?, vm.reason?);
    let held = clips(reason, goal, |clip, axis, to, field| match clip {
        Clip::Maximum => Some(format!("{axis} is held to its maximum of {to} (`max.{field}`)")),
        Clip::DriverMaximum if field == CPU && is_ceiling(vm, goal.cpu) => Some(format!(
            "{axis} is held to {to} by a limit on this host that Windlass did not set"
        )),
        Clip::DriverMaximum => Some(format!(
            "{axis} is held to {to}, the most that QEMU was started to give (see `windlass vm check`)"
        )),
        Clip::Minimum | Clip::DriverMinimum | Clip::Missing | Clip::Held | Clip::Unit => None,
    });
    if !held.is_empty() {
        return Some(format!("{}.", capital(&list(&held))));
    }
    Some(match reason.signal {
        Signal::Order => "A person ordered this size.".to_owned(),
        Signal::Stopped => "QEMU does not run the VM as usual.".to_owned(),
        Signal::Missing => format!("Nothing that is known calls for more: {}.", signals(vm)),
        Signal::Load | Signal::Memory | Signal::Urgent | Signal::Idle => {
            format!("Nothing calls for more: {}.", signals(vm))
        }
    })
}

/// Whether a limit that Windlass did not set leaves the VM no more than this.
fn is_ceiling(vm: &VmStatus, cpu: MilliCpu) -> bool {
    let found = vm.seen.and_then(|seen| seen.found_limit);
    found.is_some_and(|found| found.saturating_sub(cpu) < LIMIT_STEP)
}

/// Whether a VM whose minimum is less than this has it for want of a limit of the host.
fn has_no_part(vm: &VmStatus, cpu: MilliCpu) -> bool {
    let is_limited = vm.seen.is_some_and(|seen| seen.limit.is_some());
    !is_limited && cpu == MilliCpu::from_cores(1) && vm.bounds.min.cpu < cpu
}

/// What keeps the goal from being smaller.
fn no_call_for_less(vm: &VmStatus) -> String {
    let (Some(goal), Some(reason)) = (vm.goal, vm.reason) else { return String::new() };
    let calls = match reason.signal {
        // What units round up, and what is kept for a while, is not called for.
        Signal::Load if raised(reason.cpu) => None,
        Signal::Memory if raised(reason.mem) => None,
        Signal::Load => {
            Some(format!("{} calls for {}{} vCPU", load(vm), above(reason.cpu), goal.cpu))
        }
        Signal::Memory => {
            Some(format!("{} calls for {}{}", memory(vm), above(reason.mem), goal.mem))
        }
        Signal::Urgent => Some("the guest asked for more at once".to_owned()),
        Signal::Order => Some("a person ordered this size".to_owned()),
        Signal::Missing | Signal::Idle | Signal::Stopped => None,
    };
    let clipped = clips(reason, goal, |clip, axis, to, field| match clip {
        Clip::Minimum => Some(format!("{axis} is at its minimum of {to} (`min.{field}`)")),
        Clip::DriverMinimum if field == CPU && has_no_part(vm, goal.cpu) => Some(format!(
            "{axis} is at {to}: the host does not limit it, and a part of a vCPU takes that (see \
             `windlass vm check`)"
        )),
        Clip::DriverMinimum => Some(format!(
            "{axis} is at {to}, with which QEMU was started, and which cannot be taken"
        )),
        Clip::Missing => {
            Some(format!("{axis} stays at {to}: what is not known never shrinks a VM"))
        }
        Clip::Maximum | Clip::DriverMaximum | Clip::Held | Clip::Unit => None,
    });
    let unit = vm.unit.map_or(String::new(), |unit| format!(" of {unit}"));
    let larger = by_units(reason, goal)
        .map(|larger| format!("{larger}, because sizes move in whole compute units{unit}"));
    let parts: Vec<String> = calls.into_iter().chain(clipped).chain(larger).collect();
    if !parts.is_empty() {
        return format!("{}.", capital(&parts.join("; ")));
    }
    if [reason.cpu, reason.mem].contains(&Some(Clip::Held)) {
        // What it waits for says so.
        return String::new();
    }
    if goal == vm.bounds.min {
        return format!("It is at its minimum of {goal} (`min`).");
    }
    format!("It is what the signals call for: {}.", signals(vm))
}

/// What is said of each axis that something clips: of the clip, the axis, the goal there, and its field
/// in a file.
fn clips(
    reason: Reason,
    goal: Resources,
    say: impl Fn(Clip, &str, String, &str) -> Option<String>,
) -> Vec<String> {
    let cpu = reason.cpu.and_then(|clip| say(clip, "CPU", format!("{} vCPU", goal.cpu), CPU));
    let mem = reason.mem.and_then(|clip| say(clip, "memory", goal.mem.to_string(), "memory"));
    cpu.into_iter().chain(mem).collect()
}

/// Whether an axis has more than is called for.
fn raised(clip: Option<Clip>) -> bool {
    matches!(clip, Some(Clip::Held | Clip::Unit))
}

/// Where the goal is less than what is called for.
fn above(clip: Option<Clip>) -> &'static str {
    if matches!(clip, Some(Clip::Maximum | Clip::DriverMaximum)) { "more than " } else { "" }
}

fn signals(vm: &VmStatus) -> String {
    format!("{}, {}", load(vm), memory(vm))
}

/// `load 2.90 over 15s (aim: 0.9 per vCPU)`.
fn load(vm: &VmStatus) -> String {
    let window = vm.signals.over.or(vm.window);
    let window = window.map_or(String::new(), |window| format!(" over {window}"));
    let aim = vm.target.map_or(String::new(), |t| format!(" (aim: {} per vCPU)", t.load_average));
    vm.signals.load.map_or("load unknown".to_owned(), |load| format!("load {load:.2}{window}{aim}"))
}

/// `410MiB of 470MiB used (aim: 75%)`.
fn memory(vm: &VmStatus) -> String {
    let aim = vm.target.map_or(String::new(), |t| format!(" (aim: {:.0}%)", t.memory * 100.0));
    match (vm.signals.used, vm.signals.total) {
        (Some(used), Some(total)) => format!("{used} of {total} used{aim}"),
        _ => "memory in use unknown".to_owned(),
    }
}
