//! Why a decision came out as it did, in words with stable spellings.
//!
//! A goal carries a [`Reason`]: which signal won, and what clipped it on each axis. What a VM
//! is waiting for at this moment is a [`Waiting`]. The shell logs them, counts them by
//! [`Signal`] and [`Clip`], and `windlass explain` prints them.

use crate::{Bytes, LoadWindow, Moment, Resources, RunState, words};
use serde::{Deserialize, Serialize};

/// What the guest reported when a goal was computed. What is missing is `None`, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Load average over the VM's window, or over `over`.
    pub load: Option<f64>,
    /// The shorter window that `load` is of, while the VM's own has no figure.
    #[serde(default)]
    pub over: Option<LoadWindow>,
    /// Memory in use.
    pub used: Option<Bytes>,
    /// Memory that the guest's kernel manages.
    pub total: Option<Bytes>,
}

/// What decided the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// Load, over its target.
    Load,
    /// Memory in use, over its target.
    Memory,
    /// The guest asked for more at once.
    Urgent,
    /// Nothing calls for more than the minimum.
    Idle,
    /// Signals are missing, so the VM keeps what it has.
    Missing,
    /// A person said so: frozen, paused, or a size to be let go with.
    Order,
    /// The hypervisor does not run the VM, or is about to hand it over: it keeps what it has.
    Stopped,
}

/// What kept the goal from being what the signal called for, on one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clip {
    /// Raised to the VM's minimum.
    Minimum,
    /// Lowered to the VM's maximum.
    Maximum,
    /// Raised to the least that the hypervisor can go down to.
    DriverMinimum,
    /// Lowered to the most that the hypervisor can give.
    DriverMaximum,
    /// Kept from shrinking because a signal is missing.
    Missing,
    /// Kept for a while at what was called for before.
    Held,
    /// Raised to whole compute units: both axes follow the larger count of them, and this axis
    /// by itself calls for less.
    Unit,
}

/// Which signal won, and what clipped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What decided.
    pub signal: Signal,
    /// What clipped CPU.
    pub cpu: Option<Clip>,
    /// What clipped memory.
    pub mem: Option<Clip>,
}

/// Whom the agent talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// Who keeps the books.
    Plugin,
    /// Who speaks for the guest.
    Informant,
    /// Who has the VM.
    Hypervisor,
    /// Where load is read.
    Metrics,
}

/// What a VM waits for at this moment, or why it does not move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// It has its goal.
    AtGoal,
    /// Nothing was measured yet.
    FirstSignals,
    /// Load or memory has not been heard of since the moment given; it will not shrink.
    Signals {
        /// When a complete sample was last read.
        since: Option<Moment>,
    },
    /// No informant has said that this agent counts; it will not grow.
    Session,
    /// The plugin has not answered; it will not grow.
    Plugin,
    /// The node has no more for it now.
    Room {
        /// What it would like to have.
        wanted: Resources,
        /// What it may have.
        permit: Resources,
    },
    /// The host itself is short of memory, whatever the books say.
    HostMemory {
        /// What the host has available.
        available: Bytes,
    },
    /// No session with an informant; no memory is taken.
    Informant,
    /// The guest declined to shrink; asked again at `until`.
    Refused {
        /// When it is asked again.
        until: Moment,
    },
    /// The signals call for less, and it keeps what it has for a while: load may come back.
    Holding {
        /// What the signals call for.
        goal: Resources,
        /// When it begins to shrink, if they stay as they are; `None` while load is so close to
        /// calling for more that it has to fall further first.
        until: Option<Moment>,
    },
    /// Load calls for more than it has, which may be the work of returning memory: it does not
    /// grow on that.
    Settling {
        /// When load counts in full again; `None` while memory still leaves.
        until: Option<Moment>,
    },
    /// It grew and shrank again and again: it keeps what it has for longer.
    Flapping {
        /// How often growth took back a shrink in the last hour.
        reversals: u32,
        /// How long it keeps what is no longer called for.
        hold: std::time::Duration,
    },
    /// The guest is asked for its consent.
    Consent,
    /// The hypervisor was told, and has not got there.
    Hypervisor,
    /// A resize was refused or had no effect; tried again at `until`.
    NoEffect {
        /// When it is asked again.
        until: Moment,
    },
    /// The hypervisor does not answer; nothing moves.
    HypervisorLost,
    /// The guest is giving memory back.
    Unplug {
        /// What is left to give back.
        left: Bytes,
    },
    /// The guest agreed to give memory back, and does not.
    StuckUnplug {
        /// What is left to give back.
        left: Bytes,
    },
    /// The guest was told to use more vCPUs, and does not yet.
    Guest,
    /// The host is frozen.
    Frozen,
    /// The plugin has said that the VM is about to be moved to another node.
    Move,
    /// The VM is paused.
    Paused {
        /// Until when.
        until: Moment,
    },
    /// Only watched.
    Observing,
    /// The guest restarted; nothing is given back until its informant has registered.
    Reboot,
    /// The hypervisor does not run the VM, or is about to hand it over; nothing is resized.
    Stopped {
        /// What the hypervisor says of it.
        state: RunState,
    },
    /// The VM's load window has no figure yet; it will not shrink.
    Window {
        /// The shorter window that may make it grow until then, once that has a figure.
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
