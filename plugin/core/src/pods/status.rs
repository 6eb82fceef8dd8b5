//! The nodes and their pods, as a person who looks for a fault reads them.

use serde::Serialize;
use windlass_protocol::{Moment, Resources, VmName};

/// What a node has, and who takes it. Fields are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodePods {
    /// The node.
    pub name: String,
    /// What pods may request of it.
    pub allocatable: Resources,
    /// The node is cordoned: no VM on it grows.
    pub is_cordoned: bool,
    /// Its kubelet is short of memory: no VM on it gets more.
    pub has_memory_pressure: bool,
    /// How its room is shared: `dedicated`, `headroom`, `resize`.
    pub mode: &'static str,
    /// The requests of all pods that are neither VMs nor headroom.
    pub others: Resources,
    /// The requests of pods that hold headroom.
    pub headroom: Resources,
    /// The room for VMs: what others leave, or what VMs request and headroom pods hold.
    pub room: Resources,
    /// What is reserved for VMs.
    pub reserved: Resources,
    /// By how much others and VMs exceed what the node can allocate. While it does, nothing is granted or
    /// placed on that axis.
    pub over: Resources,
    /// As much of it may be taken before VMs that may be moved leave it; `null`: none leaves.
    pub watermark: Option<Resources>,
    /// By how much what is taken and asked for exceeds the watermark, less what leaves already: a matter of the moment
    /// ([`Pods::status_at`](super::Pods::status_at)); `null`: there is no watermark, or no moment was named.
    pub pressure: Option<Resources>,
    /// How many pods count.
    pub pods: usize,
    /// The placements that no pod has shown yet, by the pod's name.
    pub placements: Vec<Open>,
    /// The VMs whose pods are not resized, where the node's pool says that they are.
    pub not_resized: Vec<NotResized>,
}

/// A VM whose pod is not resized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotResized {
    /// The pod.
    pub pod: VmName,
    /// Why: what the pod is like, or the last refusal since it has grown.
    pub why: &'static str,
    /// It is not asked to grow before this; `null`: it cannot be resized at all.
    pub until: Option<Moment>,
}

/// A placement that the pod has not shown yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Open {
    /// The pod.
    pub pod: VmName,
    /// Its uid.
    pub uid: String,
    /// What is reserved for it.
    pub reserved: Resources,
    /// The API server said that the pod is bound.
    pub is_bound: bool,
}
