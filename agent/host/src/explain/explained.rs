//! All that a host knows of one VM, as it says it.

use super::parked::Parked;
use super::returning::Returning;
use crate::api::VmState;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use windlass_protocol::status::{NodeStatus, Ordered, VmStatus};
use windlass_protocol::{Decision, Moment, Note, VmName};

/// What a host answers when it is asked to explain a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// When this was true.
    pub at: Moment,
    /// Which VM.
    pub vm: VmName,
    /// Decisions that are over, oldest first.
    pub decisions: Vec<Decision>,
    /// The decision that is under way.
    pub open: Option<Decision>,
    /// What the books answered this VM where there was less than it asked for, oldest first.
    pub notes: Vec<Note>,
    /// The VM at this moment; absent while it is not there, and once it is no longer managed.
    pub status: Option<VmStatus>,
    /// How the VM stands with the host; absent once the host has only its history.
    #[serde(default)]
    pub state: Option<VmState>,
    /// The path of its monitor, if one is known.
    #[serde(default)]
    pub monitor: Option<PathBuf>,
    /// The last orders about the VM and about the host, and who gave them.
    #[serde(default)]
    pub ordered: Vec<Ordered>,
    /// The books at this moment; absent where another process keeps them.
    #[serde(default)]
    pub node: Option<NodeStatus>,
    /// What is wrong with what Windlass was told about this VM, a sentence each.
    pub problems: Vec<String>,
    /// What other VMs have parked, and what stays reserved for them.
    #[serde(default)]
    pub parked: Vec<Parked>,
    /// What other VMs keep for a while, and when they return it.
    #[serde(default)]
    pub returning: Vec<Returning>,
    /// Whether parked vCPUs are free for others, as host.toml says; absent where that is not known.
    #[serde(default)]
    pub trust_guest_parking: Option<bool>,
}
