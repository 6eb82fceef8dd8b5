//! Why a VM stays on a node that all VMs are to leave.

use std::fmt;
use windlass_protocol::Resources;
use windlass_protocol::pod::MAY_MOVE;

/// Why a VM does not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// The pod is the VM.
    IsItsPod,
    /// Its object does not let it be moved.
    MayNotMove,
    /// The kubelet of its node is silent.
    NodeSilent,
    /// No other node has room for so much.
    NoRoom(Resources),
}

// === impl Stays ===

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IsItsPod => f.write_str("a pod that is a VM itself cannot be moved"),
            Self::MayNotMove => write!(f, "its object has no label {MAY_MOVE}: \"true\""),
            Self::NodeSilent => f.write_str("the kubelet of the node is silent"),
            Self::NoRoom(size) => write!(f, "no other node has room for {size}"),
        }
    }
}
