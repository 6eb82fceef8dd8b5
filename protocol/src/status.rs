//! The state of a host and its VMs as programs read it: `top`, the demo, the report.
//!
//! Served as JSON over the host's socket. Fields are only added.

use crate::{
    Bytes, ComputeUnit, LoadWindow, MilliCpu, Mode, Moment, Reason, Resources, Seen, Signals,
    Target, VmName, Waiting, words,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One VM at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmStatus {
    /// Which VM.
    pub name: VmName,
    /// Whether it is acted on.
    pub mode: Mode,
    /// Who goes first.
    pub priority: i32,
    /// Its bounds.
    pub bounds: crate::Bounds,
    /// The size as the hypervisor last gave it; `None` before it was first seen.
    pub seen: Option<Seen>,
    /// vCPUs that the guest last reported online.
    pub online: Option<MilliCpu>,
    /// The most that the VM may have: what the books must cover.
    pub upper: Option<Resources>,
    /// What the guest last reported.
    pub signals: Signals,
    /// What the signals call for.
    pub goal: Option<Resources>,
    /// Why that.
    pub reason: Option<Reason>,
    /// What the plugin allows.
    pub permit: Option<Resources>,
    /// What the guest is content with for now.
    pub consent: Option<Resources>,
    /// State of the session with the informant.
    pub session: SessionState,
    /// What it waits for, or why it does not move.
    pub waiting: Vec<Waiting>,
    /// Since when its hypervisor has not answered; absent while it answers, and where the VM was
    /// never reached.
    #[serde(default)]
    pub silent_since: Option<Moment>,
    /// The step that its sizes move in.
    #[serde(default)]
    pub unit: Option<ComputeUnit>,
    /// Over which window its load is averaged.
    #[serde(default)]
    pub window: Option<LoadWindow>,
    /// What is aimed at.
    #[serde(default)]
    pub target: Option<Target>,
}

/// State of the session with the informant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// None, and it is being sought.
    Absent,
    /// Registered; the informant has not said that this session counts.
    Registered,
    /// This session counts.
    Active,
    /// The informant prefers another agent for now.
    Suspended,
}

/// The books of one node at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// What may be reserved for VMs.
    pub room: Resources,
    /// What is reserved.
    pub reserved: Resources,
    /// Who has it, and who wants more.
    pub vms: Vec<Booked>,
}

/// One VM in the books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Booked {
    /// Which VM.
    pub name: VmName,
    /// Who goes first.
    pub priority: i32,
    /// What is reserved for it.
    pub reserved: Resources,
    /// What it wants beyond that, while the want is fresh.
    pub claim: Option<Resources>,
}

/// The process that gave an order, as the kernel of the host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// The process; absent where the kernel does not say.
    pub pid: Option<u32>,
}

/// An order that a person gave, or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// What was ordered.
    pub what: OrderKind,
    /// When.
    pub at: Moment,
    /// By which process; absent where the kernel did not say.
    pub by: Option<Caller>,
}

/// What can be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderKind {
    /// Every VM of the host keeps its size.
    Freeze,
    /// That ends.
    Thaw,
    /// One VM keeps its size for a while.
    Pause,
    /// That ends, or a release does.
    Resume,
    /// One VM is let go.
    Release,
}

/// A host at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// When this was true.
    pub at: Moment,
    /// Whether the host is frozen.
    pub frozen: bool,
    /// The last order to freeze or thaw the host.
    #[serde(default)]
    pub ordered: Option<Ordered>,
    /// Memory that the host itself has available, if known.
    pub host_available: Option<Bytes>,
    /// The books.
    pub node: NodeStatus,
    /// The VMs, by name.
    pub vms: Vec<VmStatus>,
}

// === impl Caller ===

/// `uid 1000 (pid 4242)`
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {}", self.uid)?;
        self.pid.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

words::displayed!(OrderKind);

#[cfg(test)]
mod tests {
    use super::*;

    /// The log has one, and the socket the other.
    #[test]
    fn an_order_is_spelt_alike_in_words_and_in_json() {
        use OrderKind::{Freeze, Pause, Release, Resume, Thaw};
        for kind in [Freeze, Thaw, Pause, Resume, Release] {
            assert_eq!(words::named(&kind.to_string()), Some(kind));
        }
    }
}
