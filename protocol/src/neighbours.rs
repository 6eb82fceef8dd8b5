//! Other programs of a cluster that act on the pods of VMs, and what follows for the VMs.
//!
//! The plugin serves this as JSON to `windlass check`. Releases only add fields.

use crate::{VmName, words};
use serde::{Deserialize, Serialize};

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// A VerticalPodAutoscaler changes the requests of VM pods.
    VerticalPodAutoscaler,
    /// A descheduler evicts pods.
    Descheduler,
    /// A node autoscaler adds and removes nodes.
    NodeAutoscaler,
    /// One that a plugin of a later release knows.
    #[serde(other)]
    Other,
}

/// What one program does that somebody should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which program.
    pub neighbour: Neighbour,
    /// Whether it works against the plugin; else it is a limit of the program's.
    pub is_wrong: bool,
    /// What it does, and what mends that, in sentences.
    pub words: String,
    /// Some of the VM pods that it concerns.
    pub pods: Vec<VmName>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// What was found; nothing, if no such program is there.
    pub findings: Vec<Finding>,
    /// How many pods of VMs were looked at.
    pub looked_at: usize,
    /// Whether there are more than were looked at.
    #[serde(default)]
    pub is_cut: bool,
}

words::displayed!(Neighbour);
