//! One decision as one sentence: signals, goal, permit, consent, action, outcome.

use super::words::{by_units, instant, list, short, span};
use std::cmp::Ordering::{self, Equal as Same, Greater as Up, Less as Down};
use windlass_protocol::decision::{Answered, Consented};
use windlass_protocol::{Change, Clip, Decision, Moment, Outcome, Resources, Signal};

/// The decision from the signals to what became of it, in one sentence.
pub fn sentence(decision: &Decision) -> String {
    let from = decision.from;
    let refusal = decision.refusal.as_ref();
    let parts = [
        Some(format!("{}, so {}", because(decision), course(decision))),
        clips(decision),
        decision.short.map(|short| format!("at first {}", permit(short))),
        decision.permit.map(permit),
        refusal.map(|refusal| format!("at first {}", consented(refusal, from))),
        decision.consent.as_ref().map(|consent| consented(consent, from)),
        changes(&decision.changes),
        Some(outcome(decision)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} {}: {}.", instant(decision.at), short(&decision.vm), parts.join("; "))
}

/// What the signals were, and which of them decided.
fn because(decision: &Decision) -> String {
    let signals = decision.signals.describe(decision.window);
    let target = decision.target;
    let percent = target.memory * 100.0;
    match decision.reason.signal {
        Signal::Load => {
            format!("load decided ({signals}; aim: a load of {} per vCPU)", target.load_average)
        }
        Signal::Memory => format!("memory decided ({signals}; aim: {percent:.0}% in use)"),
        Signal::Urgent => format!("the guest asked for more at once ({signals})"),
        Signal::Idle => format!(
            "nothing calls for more than the minimum ({signals}; aim: a load of {} per vCPU, \
             {percent:.0}% of memory in use)",
            target.load_average
        ),
        Signal::Missing => format!("signals are missing, which never shrinks a VM ({signals})"),
        Signal::Order => format!("a person ordered it ({signals})"),
        Signal::Stopped => format!("QEMU stopped running the VM as usual ({signals})"),
    }
}

fn course(decision: &Decision) -> String {
    let (from, goal) = (decision.from, decision.goal);
    let (cpu, mem) = ways(from, goal);
    let cpu_moves = format!("{} from {} to {}", verb(cpu), from.cpu, goal.cpu);
    let mem_moves = format!("{} from {} to {}", verb(mem), from.mem, goal.mem);
    match (cpu, mem) {
        (Same, Same) => format!("it should stay at {goal}"),
        (Up, Up) | (Down, Down) => format!("it should {} from {from} to {goal}", verb(cpu)),
        (_, Same) => format!("its CPU should {cpu_moves}, and memory stay at {}", goal.mem),
        (Same, _) => format!("its memory should {mem_moves}, and CPU stay at {}", goal.cpu),
        (Up, Down) | (Down, Up) => format!("its CPU should {cpu_moves}, and memory {mem_moves}"),
    }
}

fn ways(from: Resources, to: Resources) -> (Ordering, Ordering) {
    (to.cpu.cmp(&from.cpu), to.mem.cmp(&from.mem))
}

const fn verb(way: Ordering) -> &'static str {
    match way {
        Up => "grow",
        Down => "shrink",
        Same => "stay",
    }
}

/// What kept the goal from being what the signal called for.
fn clips(decision: &Decision) -> Option<String> {
    let goal = decision.goal;
    let cpu = decision.reason.cpu.and_then(|clip| clipped("CPU", clip, &goal.cpu.to_string()));
    let mem = decision.reason.mem.and_then(|clip| clipped("memory", clip, &goal.mem.to_string()));
    let larger = by_units(decision.reason, goal)
        .map(|larger| format!("{larger}, because sizes move in whole compute units"));
    let parts: Vec<String> = [cpu, mem, larger].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| list(&parts))
}

fn clipped(axis: &str, clip: Clip, to: &str) -> Option<String> {
    Some(match clip {
        Clip::Unit => return None,
        Clip::Minimum => format!("{axis} was raised to the VM's minimum of {to}"),
        Clip::Maximum => format!("{axis} was held to the VM's maximum of {to}"),
        Clip::DriverMinimum => {
            format!("{axis} was raised to {to}, the least that QEMU can go down to")
        }
        Clip::DriverMaximum => {
            format!("{axis} was held to {to}, the most that QEMU on this host can give")
        }
        Clip::Missing => format!("{axis} was kept at {to}, because a signal is missing"),
        Clip::Held => format!("{axis} was kept at {to} for a while, in case load comes back"),
    })
}

/// What the books granted.
fn permit(answered: Answered) -> String {
    let Answered { asked, permit } = answered;
    let short_of = match (permit.cpu < asked.cpu, permit.mem < asked.mem) {
        (false, false) => return format!("the books granted {permit}, all that was asked for"),
        (true, true) => "less than it wanted of both",
        (true, false) => "less CPU than it wanted",
        (false, true) => "less memory than it wanted",
    };
    format!("the books were asked for {asked} and granted {permit}, {short_of}, for want of room")
}

/// What the guest said when it was asked to have less.
fn consented(consent: &Consented, from: Resources) -> String {
    let words = consent.status.trim();
    let words = if words.is_empty() { String::new() } else { format!(" (“{words}”)") };
    let asked = consent.asked;
    if consent.agreed {
        return format!("the guest agreed to {asked}{words}");
    }
    let stays = match ways(from, asked) {
        (_, Down) => format!(", so memory stays at {}", from.mem),
        (Down, Up | Same) => format!(", so CPU stays at {}", from.cpu),
        (Up | Same, Up | Same) => String::new(),
    };
    format!("the guest declined to go down to {asked}{words}{stays}")
}

/// What was done, in order.
fn changes(changes: &[Change]) -> Option<String> {
    let done: Vec<String> = changes
        .iter()
        .map(|change| match change {
            Change::Plug(cpu) => format!("plugged vCPUs were set to {cpu}"),
            Change::Park(cpu) => format!("vCPUs were parked down to {cpu}"),
            Change::Unpark(cpu) => format!("vCPUs were un-parked up to {cpu}"),
            Change::Memory(mem) => format!("memory was set to {mem}"),
            Change::Limit(Some(cpu)) => format!("the host's limit was set to {cpu} CPU"),
            Change::Limit(None) => "the host's limit was put back as it was found".to_owned(),
            Change::CallOff(mem) => format!("the shrink of memory was called off at {mem}"),
        })
        .collect();
    (!done.is_empty()).then(|| list(&done))
}

fn outcome(decision: &Decision) -> String {
    let after = |at: Moment| span(at.since(decision.at));
    match decision.outcome {
        Outcome::Open => "it is under way".to_owned(),
        Outcome::Reached { at } => format!("it was there after {}", after(at)),
        Outcome::Replaced { at, has } => {
            format!("it was superseded after {}, and the VM had {has} by then", after(at))
        }
        Outcome::Observed => "nothing was done, because its mode is `observe`".to_owned(),
        Outcome::Interrupted { at } => {
            format!("after {} the guest restarted or the VM went away", after(at))
        }
    }
}
