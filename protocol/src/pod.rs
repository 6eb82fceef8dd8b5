//! A pod of a cluster, as far as the books of a node need it: its names, its node, its requests, its VM.
//!
//! A [`Pod`] is read from the API server's JSON of a core/v1 Pod. Unknown fields are ignored, and `null` is
//! as an absent field. A missing name is an error. An invalid quantity is none: the largest amount counts in
//! its place, so that the pod fits on no node and disturbs no other; it is in [`Pod::problems`]. An invalid
//! annotation is a problem of the VM, in [`PodVm::problems`].
//!
//! The form is small, because a plugin holds 150,000 of them: no labels or annotations, and of its containers the one that
//! a VM runs in.

mod allocation;
mod ceiling;
mod container;
mod node_pod;
mod overhead;
mod requests;
mod vm;
pub(crate) mod wire;

pub use allocation::{Allocation, HEADROOM, Pending};
pub use ceiling::Ceiling;
pub use container::{COMPUTE, DEFAULT_CONTAINER, Fixed, Limits, VmContainer};
pub use node_pod::{MONITOR, NodePod};
pub use vm::{
    ENABLED, MAY_MOVE, PodVm, THEIR_ENABLED, THEIR_MAY_MOVE, THEIR_NAME, THEIR_RESOURCES,
};

use crate::config::Problem;
use crate::{Resources, VmName};
use serde::Deserialize;

/// A pod.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "wire::PodWire")]
pub struct Pod {
    /// Namespace and name; the namespace is empty if the JSON has none.
    pub name: VmName,
    /// The UID: a pod of the same name and another UID is another pod.
    pub uid: String,
    /// `resourceVersion`: opaque, compared for equality only.
    pub revision: String,
    /// The node, from the binding on.
    pub node: Option<String>,
    /// The scheduler that places the pod.
    pub scheduler: String,
    /// The phase.
    pub phase: Phase,
    /// Whether the pod is being deleted. It keeps its resources until it ends or is gone.
    pub is_terminating: bool,
    /// The effective requests, as the scheduler of Kubernetes 1.35 counts them. An axis without a request
    /// is zero.
    pub requests: Resources,
    /// The VM, if the pod is a VM or runs one.
    pub vm: Option<Box<PodVm>>,
    /// Whether the pod is labelled as one that holds room for VMs; its namespace says whether that is true.
    pub is_headroom: bool,
    /// How far the requests are allocated; of VMs and of pods that are labelled as headroom alone.
    pub allocation: Option<Box<Allocation>>,
    /// The quantities that are invalid, and what counts in their place.
    pub problems: Vec<Problem>,
}

/// A list of a cluster has 150,000 of them in memory at a time.
const _: () = assert!(size_of::<Pod>() <= 208, "a pod grew");

/// The phase of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers run yet; also without a node.
    Pending,
    /// The pod runs.
    Running,
    /// All containers ended, each with success.
    Succeeded,
    /// All containers ended, not all with success.
    Failed,
    /// The node does not answer, or the phase is missing or of a later version of Kubernetes.
    #[default]
    Unknown,
}

// === impl Pod ===

impl Pod {
    /// Whether the pod takes room of its node: from the binding until it ended. A pod that is being
    /// deleted takes room too.
    pub fn counts(&self) -> bool {
        self.node.is_some() && !self.phase.is_ended()
    }
}

// === impl Phase ===

impl Phase {
    /// Whether all containers of the pod ended for good.
    pub const fn is_ended(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Running | Self::Unknown => false,
        }
    }

    /// The phase that Kubernetes spells like this.
    fn spelled(word: Option<&str>) -> Self {
        match word {
            Some("Pending") => Self::Pending,
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            _ => Self::Unknown,
        }
    }
}
