//! Why a VM has its size, in a sentence for people who look at it through the plugin.
//!
//! It names no peer's words and no path, since other people read it than those who run the agent.

use windlass_protocol::plugin::{Told, Why};
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Moment, Resources, Waiting};

/// The informant prefers another agent.
const OF_ANOTHER: &str = "The informant in the guest has another agent scale the VM.";

/// What is to be told of a VM with this status for which its agent may ask no permit: while it does not act, a request tells nothing.
pub fn told_unasked(vm: &VmStatus, now: Moment) -> Option<Told> {
    let told = told(vm.goal, &vm.waiting, now);
    match told.why {
        Why::Paused | Why::Observing | Why::HypervisorSilent | Why::Stopped | Why::NoInformant => {
            Some(told)
        }
        Why::Moves
        | Why::NoMetrics
        | Why::Stuck
        | Why::HostMemory
        | Why::Room
        | Why::NoPermit
        | Why::Declined
        | Why::Resizing
        | Why::Resting
        | Why::AtGoal
        | Why::Other => match vm.session {
            SessionState::Active => None,
            SessionState::Absent | SessionState::Registered => {
                Some(Told::new(vm.goal, Why::NoInformant, &words(&Waiting::Session, now)))
            }
            SessionState::Suspended => Some(Told::new(vm.goal, Why::Paused, OF_ANOTHER)),
        },
    }
}

/// The weightiest reason why a VM has its size.
pub(crate) fn told(goal: Option<Resources>, waiting: &[Waiting], now: Moment) -> Told {
    let weightiest = waiting.iter().min_by_key(|waiting| Why::from(*waiting));
    let (why, words) = match weightiest {
        Some(waiting) => (Why::from(waiting), words(waiting, now)),
        None => (Why::AtGoal, words(&Waiting::AtGoal, now)),
    };
    Told::new(goal, why, &words)
}

fn words(waiting: &Waiting, now: Moment) -> String {
    let seconds = |until: &Moment| until.since(now).as_secs();
    match waiting {
        Waiting::AtGoal => "The VM has its goal.".to_owned(),
        Waiting::FirstSignals | Waiting::Signals { since: None } => {
            "The guest has reported no load yet, so the VM does not shrink.".to_owned()
        }
        Waiting::Signals { since: Some(since) } => {
            let silent = now.since(*since).as_secs();
            format!("The guest has reported no metrics for {silent} s, so the VM does not shrink.")
        }
        Waiting::Session => {
            "No informant in the guest speaks for the VM, so it does not grow.".to_owned()
        }
        Waiting::Informant => {
            "No informant in the guest speaks for the VM, so it keeps its memory.".to_owned()
        }
        Waiting::Plugin => {
            "The plugin gives no new permit, so the VM grows no further than its permit.".to_owned()
        }
        Waiting::Room { wanted, permit } => {
            let more = missing(*wanted, *permit);
            format!("The VM waits for room on its node: it wants {more} more.")
        }
        Waiting::HostMemory { available } => {
            format!("The node has only {available} of memory available, so the VM gets no more.")
        }
        Waiting::Refused { until } => {
            format!("The guest declined to shrink; the agent asks again in {} s.", seconds(until))
        }
        Waiting::Holding { goal, until: Some(until) } => {
            format!("The VM could shrink to {goal}, and keeps its size for {} s.", seconds(until))
        }
        Waiting::Holding { goal, until: None } => {
            format!("The VM could shrink to {goal} once its load falls further.")
        }
        Waiting::Settling { .. } => {
            "The guest returns memory, and load that this makes does not count.".to_owned()
        }
        Waiting::Flapping { reversals, hold } => format!(
            "The VM grew soon after it shrank {reversals} times in an hour, and keeps its size for {} s.",
            hold.as_secs()
        ),
        Waiting::Window { .. } => "The load window of the VM is not filled yet.".to_owned(),
        Waiting::Consent => "The guest is asked whether it can do with less.".to_owned(),
        Waiting::Hypervisor => "The hypervisor resizes the VM.".to_owned(),
        Waiting::NoEffect { until } => {
            format!("The last resize had no effect; the agent tries again in {} s.", seconds(until))
        }
        Waiting::HypervisorLost => {
            "The hypervisor does not answer the agent, so the VM keeps its size.".to_owned()
        }
        Waiting::Unplug { left } => format!("The guest returns memory, {left} to go."),
        Waiting::StuckUnplug { left } => {
            format!("The guest agreed to return memory and does not: {left} to go.")
        }
        Waiting::Guest => "The guest does not use its new vCPUs yet.".to_owned(),
        Waiting::Frozen => "A person froze the VMs of this agent.".to_owned(),
        Waiting::Move => "The VM is about to move to another node, and keeps its size.".to_owned(),
        Waiting::Paused { until } => {
            format!("The VM is paused for {} s more.", seconds(until))
        }
        Waiting::Observing => "The agent only observes the VM: its mode is observe.".to_owned(),
        Waiting::Reboot => {
            "The guest restarted, and its informant has not registered yet.".to_owned()
        }
        Waiting::Stopped { state } => format!("The VM does not run: {}.", state.describe()),
    }
}

/// On the axes on which something is missing.
fn missing(wanted: Resources, permit: Resources) -> String {
    let missing = wanted.saturating_sub(permit);
    match (missing.cpu.is_zero(), missing.mem.is_zero()) {
        (false, true) => format!("{} vCPU", missing.cpu),
        (true, false) => missing.mem.to_string(),
        (_, _) => missing.to_string(),
    }
}
