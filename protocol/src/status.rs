//! The state of a host and its VMs, for programs: `top`, the demo, the report.
//!
//! The host serves it as JSON over its socket. Releases only add fields.

use crate::{
    Bytes, ComputeUnit, LimitCounts, LoadWindow, MilliCpu, Mode, Moment, Reason, Resources, Seen,
    Signals, Target, VmName, Waiting, words,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One VM at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmStatus {
    /// The VM.
    pub name: VmName,
    /// Whether the agent acts or only observes.
    pub mode: Mode,
    /// The priority; the higher one goes first.
    pub priority: i32,
    /// Its bounds.
    pub bounds: crate::Bounds,
    /// The size that the hypervisor last reported; `None` before the first report.
    pub seen: Option<Seen>,
    /// The online vCPUs that the guest last reported.
    pub online: Option<MilliCpu>,
    /// The largest size that the VM may have; the books must cover it.
    pub upper: Option<Resources>,
    /// The guest's last report.
    pub signals: Signals,
    /// The size that the signals call for.
    pub goal: Option<Resources>,
    /// The reason of the goal.
    pub reason: Option<Reason>,
    /// The permitted size.
    pub permit: Option<Resources>,
    /// The size that the guest last agreed to.
    pub consent: Option<Resources>,
    /// The state of the session with the informant.
    pub session: SessionState,
    /// Why the VM does not move.
    pub waiting: Vec<Waiting>,
    /// Since when the hypervisor has not answered; absent while it answers, and if it never answered.
    #[serde(default)]
    pub silent_since: Option<Moment>,
    /// The compute unit.
    #[serde(default)]
    pub unit: Option<ComputeUnit>,
    /// The window over which load is averaged.
    #[serde(default)]
    pub window: Option<LoadWindow>,
    /// The target.
    #[serde(default)]
    pub target: Option<Target>,
    /// How the host's limit on its CPU held the VM up; `None` where there is no limit.
    #[serde(default)]
    pub limit_counts: Option<LimitCounts>,
}

/// The state of the session with the informant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// There is no session; the agent tries to register.
    Absent,
    /// Registered; the informant has not resumed this session yet.
    Registered,
    /// This session is current.
    Active,
    /// The informant prefers another agent for now.
    Suspended,
}

/// The books of one node at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The room for VMs.
    pub room: Resources,
    /// The sum of all reservations.
    pub reserved: Resources,
    /// The VMs with their reservations and claims.
    pub vms: Vec<Booked>,
}

/// One VM in the books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Booked {
    /// The VM.
    pub name: VmName,
    /// The priority; the higher one goes first.
    pub priority: i32,
    /// The reserved size.
    pub reserved: Resources,
    /// The larger size that the VM wants, while the claim lasts.
    pub claim: Option<Resources>,
}

/// The process that gave an order, as the host's kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The user id.
    pub uid: u32,
    /// The process id; absent if the kernel does not report it.
    pub pid: Option<u32>,
}

/// An order of a person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The kind of order.
    pub what: OrderKind,
    /// The time of the order.
    pub at: Moment,
    /// The process; absent if the kernel did not report it.
    pub by: Option<Caller>,
}

/// The kinds of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderKind {
    /// All VMs of the host keep their sizes.
    Freeze,
    /// Ends a freeze.
    Thaw,
    /// One VM keeps its size for a while.
    Pause,
    /// Ends a pause or a release.
    Resume,
    /// The agent releases one VM.
    Release,
}

/// A host at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// The time of this state.
    pub at: Moment,
    /// Whether the host is frozen.
    pub frozen: bool,
    /// The last order to freeze or thaw the host.
    #[serde(default)]
    pub ordered: Option<Ordered>,
    /// The host's available memory, if known.
    pub host_available: Option<Bytes>,
    /// The books; absent where another process keeps them.
    #[serde(default)]
    pub node: Option<NodeStatus>,
    /// The VMs, by name.
    pub vms: Vec<VmStatus>,
}

// === impl VmStatus ===

impl VmStatus {
    /// The CPU that the VM uses: the vCPUs that the guest reports online, or else those that are plugged,
    /// as far as the host's limit leaves them to it. `None` before the hypervisor reported any.
    pub fn cpu(&self) -> Option<MilliCpu> {
        let seen = self.seen?;
        let cpu = self.online.unwrap_or(seen.plugged);
        Some(seen.limit.map_or(cpu, |limit| limit.min(cpu)))
    }
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

    /// The log has the word, and the socket has JSON.
    #[test]
    fn an_order_is_spelt_alike_in_words_and_in_json() {
        use OrderKind::{Freeze, Pause, Release, Resume, Thaw};
        for kind in [Freeze, Thaw, Pause, Resume, Release] {
            assert_eq!(words::named(&kind.to_string()), Some(kind));
        }
    }
}
