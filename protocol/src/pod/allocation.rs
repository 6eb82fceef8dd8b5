//! How far a pod has what its spec asks for: what its kubelet has allocated, and what it says of a resize.
//!
//! A kubelet compares what it has allocated, not what specs ask for, when it admits a pod or a resize. So a pod
//! has for sure only what both say: the smaller of the two, on each axis.

use super::requests;
use super::wire::{Spec, Status};
use crate::Resources;

/// The label of a pod that holds room of its node for VMs to grow into: `true`. It says so only in the plugin's own
/// namespace.
pub const HEADROOM: &str = "windlass.dev/headroom";

/// The requests of a pod by its spec and by its kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// What the spec asks for.
    pub spec: Resources,
    /// What the kubelet has allocated; `None`: the kubelet has not said so of every container.
    pub allocated: Option<Resources>,
    /// The number of the spec, which never goes back.
    pub generation: i64,
    /// The status is of this spec: the kubelet has seen it.
    pub is_observed: bool,
    /// The kubelet does not carry a resize out.
    pub pending: Option<Pending>,
}

/// Why a resize waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// The node has too little room at the moment.
    Deferred,
    /// The node can never give it.
    Infeasible,
    /// A reason of a later version of Kubernetes.
    Other,
}

// === impl Allocation ===

impl Allocation {
    pub(super) fn of(spec: &Spec, status: &Status, generation: Option<i64>) -> Self {
        let conditions = status.conditions.as_ref().map_or(&[][..], Vec::as_slice);
        let pending = conditions
            .iter()
            .find(|one| one.kind.as_deref() == Some(requests::PENDING))
            .map(|condition| match condition.reason.as_deref() {
                Some("Deferred") => Pending::Deferred,
                Some(requests::INFEASIBLE) => Pending::Infeasible,
                Some(_) | None => Pending::Other,
            });
        let observed = status.observed_generation;
        Self {
            spec: requests::by_spec(spec),
            allocated: requests::allocated(spec, status),
            generation: generation.unwrap_or_default(),
            is_observed: generation.zip(observed).is_some_and(|(newest, seen)| seen >= newest),
            pending,
        }
    }

    /// What the pod has whatever its kubelet does next; nothing before the kubelet has admitted it.
    pub fn sure(&self) -> Resources {
        self.allocated.map(|allocated| allocated.min(self.spec)).unwrap_or_default()
    }

    /// Whether no resize is under way: the kubelet has seen the spec, and allocated just that.
    pub fn is_settled(&self) -> bool {
        self.is_observed && self.pending.is_none() && self.allocated == Some(self.spec)
    }
}
