//! Why a VM does not move at this moment, and what would change that.

use super::words::{amount, capital, clock, instant, lasting, left, retry, short};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Moment, Waiting};

/// The state of a VM that nothing keeps from its goal.
pub(super) const AT_GOAL: &str = "at goal";

/// What a VM waits for, in a few words: `top` and the first sentence of `explain` show the same.
pub fn state(vm: &VmStatus, now: Moment) -> String {
    let mut parts: Vec<String> = Vec::new();
    let superseded = (vm.session == SessionState::Suspended).then(|| session(vm.session));
    for part in vm.waiting.iter().map(|why| brief(why, vm, now)).chain(superseded) {
        let is_news = part != AT_GOAL || vm.session != SessionState::Suspended;
        if is_news && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join("; ")
}

/// One of the things that a VM waits for, in a few words.
fn brief(waiting: &Waiting, vm: &VmStatus, now: Moment) -> String {
    match waiting {
        Waiting::AtGoal => AT_GOAL.to_owned(),
        Waiting::Signals { since: Some(since) } => {
            format!("no {} from the guest for {}", missing(vm), lasting(now.since(*since)))
        }
        Waiting::FirstSignals | Waiting::Signals { since: None } => {
            format!("no {} from the guest yet", missing(vm))
        }
        Waiting::Session | Waiting::Informant => session(vm.session),
        Waiting::Plugin => "no new permit from the plugin".to_owned(),
        Waiting::Room { wanted, permit } => {
            format!("waiting for room, {} more", amount(wanted.saturating_sub(*permit)))
        }
        Waiting::HostMemory { available } => format!("host short of memory, {available} available"),
        Waiting::Refused { until } => format!("guest declined to shrink; {}", retry(*until, now)),
        Waiting::Holding { goal, until: Some(until) } => {
            format!("could shrink to {goal}; waits until {}", clock(*until))
        }
        Waiting::Holding { goal, until: None } => {
            format!("could shrink to {goal} once load falls further")
        }
        Waiting::Settling { until: Some(until) } => {
            format!("returning memory makes load; CPU waits until {}", clock(*until))
        }
        Waiting::Settling { until: None } => {
            "returning memory makes load; CPU waits for its end".to_owned()
        }
        Waiting::Flapping { reversals, hold } => {
            format!(
                "flapping, {reversals} reversals in an hour; shrinking waits {}",
                lasting(*hold)
            )
        }
        Waiting::Consent => "asking the guest to shrink".to_owned(),
        Waiting::Hypervisor if vm.seen.is_none() => "asking QEMU what it has".to_owned(),
        Waiting::Hypervisor => "QEMU is resizing".to_owned(),
        Waiting::NoEffect { until } => format!("resize had no effect; {}", retry(*until, now)),
        Waiting::HypervisorLost => silence(vm, now),
        Waiting::Unplug { left } => format!("returning memory, {left} to go"),
        Waiting::StuckUnplug { left } => format!("returning memory is stuck, {left} to go"),
        Waiting::Guest => "guest is adding vCPUs".to_owned(),
        Waiting::Frozen => "frozen".to_owned(),
        Waiting::Move => "about to move to another node".to_owned(),
        Waiting::Paused { until } => format!("paused until {}", clock(*until)),
        Waiting::Observing => "observing".to_owned(),
        Waiting::Reboot => "guest restarted; no informant yet".to_owned(),
        Waiting::Stopped { state } => state.describe().to_owned(),
        Waiting::Window { over: Some(over) } => {
            format!("filling the load window; only load over {over} counts yet")
        }
        Waiting::Window { over: None } => "filling the load window".to_owned(),
    }
}

/// The same in sentences, with what an operator can do about it.
pub fn waiting(waiting: &Waiting, vm: &VmStatus, now: Moment) -> String {
    let name = short(&vm.name);
    match waiting {
        Waiting::AtGoal => "It has its goal, and waits for nothing.".to_owned(),
        Waiting::FirstSignals | Waiting::Signals { .. } => unheard(waiting, vm, now),
        Waiting::Session => without_session(vm.session, "it does not grow"),
        Waiting::Plugin => NO_PERMIT.to_owned(),
        Waiting::Room { wanted, permit } => format!(
            "It waits for room on the node: it wants {wanted} and is granted {permit}. It gets what \
             others give back, by priority and need."
        ),
        Waiting::HostMemory { available } => {
            format!("Its memory does not grow: the host itself has only {available} {HOST_MEMORY}")
        }
        Waiting::Informant => without_session(vm.session, MEMORY_STAYS),
        Waiting::Refused { until } => {
            format!("{DECLINED} {}, at {}.", capital(&retry(*until, now)), clock(*until))
        }
        Waiting::Holding { goal, until: Some(until) } => format!(
            "It could shrink to {goal}, and waits until {} ({}) in case load comes back: \
             `[scale_down]` of its file says how long.",
            clock(*until),
            left(*until, now)
        ),
        Waiting::Holding { goal, until: None } => format!("It could shrink to {goal}, {NEAR}"),
        Waiting::Settling { until: Some(until) } => {
            format!("{RETURNING} before {}.", clock(*until))
        }
        Waiting::Settling { until: None } => {
            format!("{RETURNING} while memory leaves, and for a load window after.")
        }
        Waiting::Flapping { reversals, hold } => format!(
            "It is flapping: {reversals} times in the last hour it grew soon after it had shrunk. So \
             it now waits {} before it shrinks. {CALMER}",
            lasting(*hold)
        ),
        Waiting::Consent => "The guest is being asked whether it can do with less.".to_owned(),
        Waiting::Hypervisor if vm.seen.is_none() => "QEMU is asked what the VM has.".to_owned(),
        Waiting::Hypervisor => "QEMU was told the new size, and is not there yet.".to_owned(),
        Waiting::NoEffect { until } => {
            format!("{NO_EFFECT} {}, at {}.", capital(&retry(*until, now)), clock(*until))
        }
        Waiting::HypervisorLost => format!(
            "{}: nothing moves, and what the VM may have stays reserved. Is its process stopped or \
             hung? `windlass vm check {name}` says what is seen of its monitor.",
            capital(&silence(vm, now))
        ),
        Waiting::Unplug { left } => format!("The guest is returning memory, {left} to go."),
        Waiting::StuckUnplug { left } => {
            format!("The guest agreed to return memory and does not: {left} {STUCK}")
        }
        Waiting::Guest => ADDING.to_owned(),
        Waiting::Frozen => {
            "The host is frozen: no VM changes its size until `windlass thaw`.".to_owned()
        }
        Waiting::Move => MOVING.to_owned(),
        Waiting::Paused { until } => format!(
            "It is paused: it keeps its size until {}, or until `windlass resume {name}`.",
            instant(*until)
        ),
        Waiting::Observing => OBSERVING.to_owned(),
        Waiting::Reboot => RESTARTED.to_owned(),
        Waiting::Stopped { state } => {
            format!("{}: nothing is resized meanwhile.", capital(state.describe()))
        }
        Waiting::Window { over: Some(over) } => format!(
            "Its load window is not filled yet, so it does not shrink. Until then load over {over} \
             may make it grow."
        ),
        Waiting::Window { over: None } => FILLING.to_owned(),
    }
}

const NO_PERMIT: &str = "No new permit from the plugin: it does not answer, or refuses the request. The VM \
     grows no further than the permit that it holds.";
const HOST_MEMORY: &str = "available, whatever the books say. Either `node` in host.toml allows more \
     than there is, or something else on the host takes it.";
const RESTARTED: &str = "The guest restarted: all that it may use counts, and it gives nothing back \
     until its informant has registered.";
const FILLING: &str = "Its load window is not filled yet, so it does not shrink: there are less than \
     five seconds of samples.";
const NEAR: &str = "but its load is so near to calling for more that it has to fall further first.";
const RETURNING: &str = "Its load calls for more, but returning memory makes load of its own: CPU does \
     not grow on that load";
const CALMER: &str = "A longer `load_window` or `[scale_down]` in its file is calmer.";
const DECLINED: &str = "The guest declined to shrink, which is normal: what it uses would not fit \
     with a margin.";
const NO_EFFECT: &str = "The last resize had no effect: QEMU refused it, and its words are in the log, \
     or the guest did not follow.";
const STUCK: &str = "to go, which stay reserved. Something in the guest holds pages that cannot move. \
     It goes on when the guest lets go of them; a restart of the guest frees them for certain.";
const ADDING: &str = "QEMU has the vCPUs, and the guest does not use them yet. If it stays so, look \
     in the guest: does the informant run, and what does /sys/devices/system/cpu/online say?";
const MOVING: &str = "The VM is about to move to another node, says the plugin: nothing changes \
     before that.";
pub(super) const MEMORY_STAYS: &str = "its memory does not shrink";
const OBSERVING: &str = "Its mode is `observe`: goals are computed and recorded, and nothing is \
     changed. `mode = \"act\"` in its file lets it follow its load.";

fn unheard(waiting: &Waiting, vm: &VmStatus, now: Moment) -> String {
    format!(
        "{}: what is not known never shrinks a VM. If it stays so, look in the guest: \
         `systemctl status windlass-informant`; and here: can the host reach the address in the \
         VM's file?",
        capital(&brief(waiting, vm, now))
    )
}

/// What becomes of a VM whose informant does not speak for it, as far as this agent is concerned.
pub(super) fn without_session(session: SessionState, effect: &str) -> String {
    match session {
        SessionState::Absent => format!(
            "No informant speaks for the guest: {effect}. Look in the guest: \
             `systemctl status windlass-informant`; and can it reach this host?"
        ),
        SessionState::Registered | SessionState::Active => {
            format!("The informant has not said that this agent counts: {effect} until then.")
        }
        SessionState::Suspended => {
            "The VM is now controlled by another agent, so this one changes \
             nothing. The log of the informant in the guest names the other."
                .to_owned()
        }
    }
}

fn session(session: SessionState) -> String {
    match session {
        SessionState::Absent => "no informant in the guest",
        SessionState::Registered | SessionState::Active => "informant has not confirmed this agent",
        SessionState::Suspended => "now controlled by another agent",
    }
    .to_owned()
}

/// What of its figures the guest does not report.
fn missing(vm: &VmStatus) -> &'static str {
    match (vm.signals.load, vm.signals.used) {
        (None, Some(_)) => "load",
        (Some(_), None) => "memory figures",
        (None, None) | (Some(_), Some(_)) => "metrics",
    }
}

fn silence(vm: &VmStatus, now: Moment) -> String {
    vm.silent_since.map_or("QEMU not answering".to_owned(), |since| {
        format!("QEMU not answering for {}", lasting(now.since(since)))
    })
}
