//! Why a VM does not move at this moment, and what would change that.

use super::words::{clock, instant};
use windlass_protocol::Waiting;

/// What a VM waits for, as a sentence.
pub fn waiting(waiting: &Waiting) -> String {
    match waiting {
        Waiting::AtGoal => "It has its goal, and waits for nothing.".to_owned(),
        Waiting::FirstSignals => {
            "It waits for the guest's first figures: nothing was measured yet.".to_owned()
        }
        Waiting::Signals { since: Some(since) } => format!(
            "It will not shrink: load or memory has not been heard of since {}.",
            instant(*since)
        ),
        Waiting::Signals { since: None } => {
            "It will not shrink: load and memory have never been heard of together.".to_owned()
        }
        Waiting::Plugin => {
            "It will not grow: the plugin, which keeps the books, has not answered.".to_owned()
        }
        Waiting::Room { wanted, permit } => format!(
            "It waits for room on the node: it wants {wanted} and may have {permit}; a claim is \
             kept, and it is given what others give back."
        ),
        Waiting::HostMemory { available } => format!(
            "It will not grow in memory: the host itself has only {available} available, whatever \
             the books say."
        ),
        Waiting::Informant => {
            "Its memory will not shrink: no informant speaks for the guest.".to_owned()
        }
        Waiting::Refused { until } => format!(
            "The guest refused to have less, which is normal; it is asked again at {}.",
            instant(*until)
        ),
        Waiting::Holding { goal, until: Some(until) } => format!(
            "It could do with {goal}, and keeps what it has until {} in case load comes back.",
            instant(*until)
        ),
        Waiting::Holding { goal, until: None } => format!(
            "It could do with {goal}, but its load is too close to calling for more: it shrinks once \
             load has fallen further."
        ),
        Waiting::Settling { until } => format!(
            "It does not grow on its load before {}: the guest is returning memory, which makes load \
             of its own.",
            instant(*until)
        ),
        Waiting::Flapping { reversals, hold } => format!(
            "It is flapping: {reversals} times in the last hour it grew again soon after it shrank. \
             So it now keeps what it has for {} s before it shrinks.",
            hold.as_secs()
        ),
        Waiting::Consent => "It waits for the guest's consent to have less.".to_owned(),
        Waiting::Hypervisor => {
            "It waits for the hypervisor, which was told the new size and has not got there."
                .to_owned()
        }
        Waiting::NoEffect { until } => format!(
            "A resize had no effect: the hypervisor refused it, and its words are in the host's log, \
             or the guest did not follow. It is tried again at {}.",
            instant(*until)
        ),
        Waiting::HypervisorLost => {
            "Nothing moves: the hypervisor does not answer on its monitor.".to_owned()
        }
        Waiting::Unplug { left } => {
            format!("The guest is giving memory back: {left} are left to give.")
        }
        Waiting::StuckUnplug { left } => format!(
            "The guest agreed to give memory back and does not: {left} are left, and stay in the \
             books."
        ),
        Waiting::Guest => {
            "It waits for the guest, which was told to use more vCPUs and does not yet.".to_owned()
        }
        Waiting::Frozen => "Nothing moves: the host is frozen, until `windlass thaw`.".to_owned(),
        Waiting::Move => {
            "Nothing moves: the plugin has said that the VM is about to be moved to another node."
                .to_owned()
        }
        Waiting::Paused { until } => format!(
            "Nothing moves: the VM is paused until {}, or until `windlass resume`.",
            instant(*until)
        ),
        Waiting::Observing => {
            "Nothing is touched: its mode is `observe`, which only decides and records.".to_owned()
        }
        Waiting::Reboot => {
            "The guest restarted: nothing is given back until its informant has registered."
                .to_owned()
        }
        Waiting::Stopped { state } => format!("Nothing is resized: {}.", state.describe()),
        Waiting::Window { over: Some(over) } => format!(
            "It will not shrink yet: its load window is not filled. Until then load over {over} \
             may make it grow."
        ),
        Waiting::Window { over: None } => {
            "It will not shrink yet: its load has not been measured for five seconds.".to_owned()
        }
    }
}

/// The same in a word or two, for a table.
pub fn brief(waiting: &Waiting) -> String {
    match waiting {
        Waiting::AtGoal => "at goal".to_owned(),
        Waiting::FirstSignals => "first figures".to_owned(),
        Waiting::Signals { .. } => "figures missing".to_owned(),
        Waiting::Plugin => "plugin".to_owned(),
        Waiting::Room { wanted, permit } => {
            let more = wanted.saturating_sub(*permit);
            format!("room for {more} more")
        }
        Waiting::HostMemory { available } => format!("host memory, {available} left"),
        Waiting::Informant => "informant".to_owned(),
        Waiting::Refused { until } => format!("refused, asks at {}", clock(*until)),
        Waiting::Holding { until: Some(until), .. } => format!("shrinks at {}", clock(*until)),
        Waiting::Holding { until: None, .. } => "shrinks on less load".to_owned(),
        Waiting::Settling { until } => format!("settling to {}", clock(*until)),
        Waiting::Flapping { .. } => "flapping".to_owned(),
        Waiting::Consent => "consent".to_owned(),
        Waiting::Hypervisor => "hypervisor".to_owned(),
        Waiting::NoEffect { until } => {
            format!("no effect, tries at {}", clock(*until))
        }
        Waiting::HypervisorLost => "hypervisor lost".to_owned(),
        Waiting::Unplug { left } => format!("unplug, {left} left"),
        Waiting::StuckUnplug { left } => format!("unplug stuck, {left} left"),
        Waiting::Guest => "guest's vCPUs".to_owned(),
        Waiting::Frozen => "frozen".to_owned(),
        Waiting::Move => "a move".to_owned(),
        Waiting::Paused { until } => format!("paused to {}", clock(*until)),
        Waiting::Observing => "observing".to_owned(),
        Waiting::Reboot => "rebooted".to_owned(),
        Waiting::Stopped { state } => state.describe().to_owned(),
        Waiting::Window { .. } => "load window fills".to_owned(),
    }
}
