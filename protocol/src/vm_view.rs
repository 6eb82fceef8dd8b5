//! The VMs of a cluster for people: whether each follows its load, and why not.
//!
//! The plugin serves these as JSON to `windlass top`, `explain` and `check`, and writes the [`Condition`] on the pod of the VM.
//! Releases only add fields. A reason is part of the surface: alerts and scripts compare it.

use crate::{Bounds, Moment, Resources, VmName, words};
use serde::{Deserialize, Serialize};

/// The type of the condition that the plugin keeps on the pod of a VM.
pub const CONDITION: &str = "windlass.dev/Scaling";

/// Whether a VM follows its load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The reason; it says the status, too.
    pub reason: Scaling,
    /// The same in a sentence, with figures.
    pub message: String,
}

/// The status of a condition, as Kubernetes spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Status {
    /// The VM follows its load.
    True,
    /// The VM does not.
    False,
    /// Nothing tells whether it does.
    Unknown,
}

/// Why a VM follows its load, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scaling {
    /// It follows its load.
    Following,
    /// Its agent has not asked for it lately.
    AgentSilent,
    /// Its annotations are invalid.
    AnnotationsInvalid,
    /// Its node is cordoned, and it wants more.
    NodeCordoned,
    /// The kubelet of its node is short of memory, and it wants more of it.
    NodeMemoryPressure,
    /// More is taken of its node than the node has, and it wants more.
    NodeOverfull,
    /// Its node has no room for what it wants.
    NodeFull,
    /// Its pod is not resized.
    PodNotResized,
    /// Its permit waits for what the plugin writes.
    PermitWaits,
    /// It is about to move to another node.
    Moving,
    /// A person has it keep its size.
    Paused,
    /// Its agent only observes it.
    Observing,
    /// Its hypervisor does not answer its agent.
    HypervisorSilent,
    /// It does not run, or its guest restarts.
    NotRunning,
    /// No informant speaks for its guest.
    InformantSilent,
    /// Its guest reports no metrics.
    MetricsMissing,
    /// A resize has no effect.
    ResizeStuck,
    /// The node itself has less memory than its books.
    HostMemoryShort,
    /// What a plugin of a later release says.
    #[serde(other)]
    Other,
}

/// One VM, as its plugin knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmView {
    /// Its pod.
    pub pod: VmName,
    /// Its object: the pod, or the one that the pod runs.
    pub object: VmName,
    /// The node of the pod.
    pub node: String,
    /// Its bounds.
    pub bounds: Bounds,
    /// Its priority; the higher one goes first.
    pub priority: i32,
    /// The size that is reserved for it.
    pub reserved: Resources,
    /// The larger size that it asked for and did not get, while that claim lasts.
    pub wanted: Option<Resources>,
    /// The size that its signals call for, if its agent tells.
    pub goal: Option<Resources>,
    /// When its agent asked last; `None`: not since this plugin knows the pod.
    pub heard: Option<Moment>,
    /// What its agent says of it, in a sentence.
    pub told: Option<String>,
    /// Whether it follows its load.
    pub condition: Condition,
}

/// The VMs that a caller may see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmViews {
    /// The time of this state.
    pub at: Moment,
    /// The VMs, by pod.
    pub vms: Vec<VmView>,
    /// As many more are left out.
    #[serde(default)]
    pub left_out: usize,
}

// === impl Scaling ===

impl Scaling {
    /// All that a plugin of this release says.
    pub const ALL: [Self; 18] = [
        Self::Following,
        Self::AgentSilent,
        Self::AnnotationsInvalid,
        Self::NodeCordoned,
        Self::NodeMemoryPressure,
        Self::NodeOverfull,
        Self::NodeFull,
        Self::PodNotResized,
        Self::PermitWaits,
        Self::Moving,
        Self::Paused,
        Self::Observing,
        Self::HypervisorSilent,
        Self::NotRunning,
        Self::InformantSilent,
        Self::MetricsMissing,
        Self::ResizeStuck,
        Self::HostMemoryShort,
    ];

    /// The status that goes with it.
    pub const fn status(self) -> Status {
        match self {
            Self::Following => Status::True,
            Self::AgentSilent | Self::HypervisorSilent | Self::MetricsMissing | Self::Other => {
                Status::Unknown
            }
            Self::AnnotationsInvalid
            | Self::NodeCordoned
            | Self::NodeMemoryPressure
            | Self::NodeOverfull
            | Self::NodeFull
            | Self::PodNotResized
            | Self::PermitWaits
            | Self::Moving
            | Self::Paused
            | Self::Observing
            | Self::NotRunning
            | Self::InformantSilent
            | Self::ResizeStuck
            | Self::HostMemoryShort => Status::False,
        }
    }

    /// Whether a person ordered it, or it passes by itself: nothing is wrong.
    pub const fn is_meant(self) -> bool {
        match self {
            Self::Following | Self::Moving | Self::Paused | Self::Observing => true,
            Self::AgentSilent
            | Self::AnnotationsInvalid
            | Self::NodeCordoned
            | Self::NodeMemoryPressure
            | Self::NodeOverfull
            | Self::NodeFull
            | Self::PodNotResized
            | Self::PermitWaits
            | Self::HypervisorSilent
            | Self::NotRunning
            | Self::InformantSilent
            | Self::MetricsMissing
            | Self::ResizeStuck
            | Self::HostMemoryShort
            | Self::Other => false,
        }
    }

    /// The reason that is spelled like this.
    pub fn spelled(word: &str) -> Option<Self> {
        words::named(word)
    }
}

words::displayed!(Scaling, Status);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_a_later_release_is_read() {
        let read = |text| serde_json::from_str::<Condition>(text).expect("a condition");
        let known = read(r#"{"reason":"NodeFull","message":"full"}"#);
        assert_eq!((known.reason, known.reason.status()), (Scaling::NodeFull, Status::False));
        let later = read(r#"{"reason":"NodeOnFire","message":"The node burns.","since":1}"#);
        assert_eq!((later.reason, later.reason.status()), (Scaling::Other, Status::Unknown));
        assert_eq!(later.message, "The node burns.");
        assert!(!Scaling::ALL.contains(&Scaling::Other));
    }
}
