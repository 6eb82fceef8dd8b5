//! A change of a headroom pod, and what becomes of it.

use crate::no_success::NoSuccess;
use windlass_protocol::{Resources, VmName};

/// What is to be written of a headroom pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The node that it is for.
    pub node: String,
    /// The pod.
    pub pod: VmName,
    /// What is to become of it.
    pub write: Write,
}

/// What is to become of a headroom pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is made.
    Create {
        /// What it requests.
        size: Resources,
    },
    /// It requests something else.
    Resize {
        /// Which pod.
        uid: String,
        /// Which revision of it, and no other.
        revision: String,
        /// What it requests.
        size: Resources,
        /// It asks again for what it has: the kubelet does not give it more.
        gives_up: bool,
    },
    /// It goes.
    Delete {
        /// Which pod.
        uid: String,
        /// Which revision of it, and no other.
        revision: String,
    },
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The API server carried it out: the pod will be seen with another revision.
    Answered,
    /// The API server refuses it, or says that the pod has another revision.
    Refused,
    /// No answer tells.
    Unknown,
}

// === impl Written ===

impl Written {
    /// Of a write that had no success. A conflict by itself is no proof that the pod has another revision: an API server that
    /// is busy says so, too, and then the pod is never seen with one.
    pub const fn of(why: NoSuccess) -> Self {
        match why {
            NoSuccess::Gone | NoSuccess::Conflict | NoSuccess::Invalid | NoSuccess::Refused => {
                Self::Refused
            }
            NoSuccess::Unknown => Self::Unknown,
        }
    }
}
