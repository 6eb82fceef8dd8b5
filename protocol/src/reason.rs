//! The reasons of decisions, as words with stable spellings.
//!
//! A goal carries a [`Reason`]: the signal that won, and the limit that clipped it on each axis. A
//! [`Waiting`] says why a VM does not move. The shell logs both and counts them by [`Signal`] and [`Clip`];
//! `windlass explain` prints them.

use crate::{Bytes, LoadWindow, Moment, Resources, RunState, words};
use serde::{Deserialize, Serialize};

/// The guest's report from which a goal was computed. A missing figure is `None`, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Load average over the VM's window, or over `over`.
    pub load: Option<f64>,
    /// The shorter window of `load`, while the VM's own window has no figure.
    #[serde(default)]
    pub over: Option<LoadWindow>,
    /// Memory in use.
    pub used: Option<Bytes>,
    /// Memory that the guest's kernel manages.
    pub total: Option<Bytes>,
}

/// The signal that decided the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// Load, over its target.
    Load,
    /// Memory in use, over its target.
    Memory,
    /// The guest asked for more memory at once.
    Urgent,
    /// No signal calls for more than the minimum.
    Idle,
    /// Signals are missing, so the VM keeps its size.
    Missing,
    /// A person ordered it: a freeze, a pause, or a size for the release.
    Order,
    /// The hypervisor does not run the VM or is about to hand it over, so the VM keeps its size.
    Stopped,
}

/// Why the goal differs, on one axis, from what the signal called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clip {
    /// Raised to the VM's minimum.
    Minimum,
    /// Lowered to the VM's maximum.
    Maximum,
    /// Raised to the hypervisor's minimum.
    DriverMinimum,
    /// Lowered to the hypervisor's maximum.
    DriverMaximum,
    /// Not lowered, because a signal is missing.
    Missing,
    /// Kept for a while at an earlier goal.
    Held,
    /// Raised to whole compute units: both axes follow the larger count, and this axis by itself calls for
    /// less.
    Unit,
}

/// The signal that won, and the limits that clipped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The signal.
    pub signal: Signal,
    /// The limit of CPU.
    pub cpu: Option<Clip>,
    /// The limit of memory.
    pub mem: Option<Clip>,
}

/// A peer of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// The plugin, which keeps the books.
    Plugin,
    /// The informant, which speaks for the guest.
    Informant,
    /// The hypervisor, which runs the VM.
    Hypervisor,
    /// The source of load figures.
    Metrics,
}

/// Why a VM does not move at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// The VM has its goal.
    AtGoal,
    /// The agent has no signal yet.
    FirstSignals,
    /// Load or memory is missing; the VM does not shrink.
    Signals {
        /// When the agent last read a complete sample.
        since: Option<Moment>,
    },
    /// No informant has made this agent's session current; the VM does not grow.
    Session,
    /// The plugin has not answered; the VM grows no further than its permit.
    Plugin,
    /// The node has no more room for the VM.
    Room {
        /// The size that the agent asked for.
        wanted: Resources,
        /// The permitted size.
        permit: Resources,
    },
    /// The host itself is short of memory, even if the books have room.
    HostMemory {
        /// The host's available memory.
        available: Bytes,
    },
    /// There is no session with an informant; the VM keeps its memory.
    Informant,
    /// The guest declined to shrink; the agent asks again at `until`.
    Refused {
        /// When the agent tries again.
        until: Moment,
    },
    /// The signals call for less, but the VM keeps its size for a while: load may return.
    Holding {
        /// The size that the signals call for.
        goal: Resources,
        /// When the VM begins to shrink if the signals stay the same. `None` while load is too close to
        /// the next compute unit and must fall further.
        until: Option<Moment>,
    },
    /// Load calls for more, but may come from the return of memory: the VM does not grow for it.
    Settling {
        /// When load counts in full again; `None` while the guest still returns memory.
        until: Option<Moment>,
    },
    /// The VM grew and shrank repeatedly: it keeps its size for longer.
    Flapping {
        /// How often in the last hour growth reversed a shrink.
        reversals: u32,
        /// How long the VM keeps unneeded resources.
        hold: std::time::Duration,
    },
    /// The agent waits for the guest's consent.
    Consent,
    /// The hypervisor has not finished a resize.
    Hypervisor,
    /// A resize was refused or had no effect; the agent tries again at `until`.
    NoEffect {
        /// When the agent tries again.
        until: Moment,
    },
    /// The hypervisor does not answer; the VM keeps its size.
    HypervisorLost,
    /// The guest is returning memory.
    Unplug {
        /// The amount still to return.
        left: Bytes,
    },
    /// The guest agreed to return memory, but does not.
    StuckUnplug {
        /// The amount still to return.
        left: Bytes,
    },
    /// The guest does not use its new vCPUs yet.
    Guest,
    /// The host is frozen.
    Frozen,
    /// The plugin has announced a move of the VM to another node.
    Move,
    /// The VM is paused.
    Paused {
        /// The end of the pause.
        until: Moment,
    },
    /// The VM is only observed.
    Observing,
    /// The guest restarted; the VM does not shrink before its informant has a session.
    Reboot,
    /// The hypervisor does not run the VM or is about to hand it over; the VM keeps its size.
    Stopped {
        /// The hypervisor's state of the VM.
        state: RunState,
    },
    /// The VM's load window has no figure yet; the VM does not shrink.
    Window {
        /// The shorter window that may make the VM grow until then.
        over: Option<LoadWindow>,
    },
}

words::displayed!(Signal, Clip, Peer);

// === impl Signals ===

impl Signals {
    /// `load 2.7 over 15s, 310MiB of 470MiB used`; `window` is the VM's.
    pub fn describe(&self, window: LoadWindow) -> String {
        let load = match (self.load, self.over) {
            (Some(load), None) => format!("load {load:.2} over {window}"),
            (Some(load), Some(over)) => {
                format!("load {load:.2} over {over}, none over {window} yet")
            }
            (None, _) => "load unknown".to_owned(),
        };
        match (self.used, self.total) {
            (Some(used), Some(total)) => format!("{load}, {used} of {total} used"),
            _ => format!("{load}, memory unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person reads both side by side.
    #[test]
    fn metrics_and_json_spell_a_reason_alike() {
        use {Clip as C, Signal as S};
        for signal in [S::Load, S::Memory, S::Urgent, S::Idle, S::Missing, S::Order] {
            assert_eq!(words::named(&signal.to_string()), Some(signal));
        }
        for clip in [C::Minimum, C::Maximum, C::DriverMinimum, C::DriverMaximum, C::Missing] {
            assert_eq!(words::named(&clip.to_string()), Some(clip));
        }
    }
}
