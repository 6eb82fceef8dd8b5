//! A change of a headroom pod or of the pod of a VM, and what becomes of it.

use crate::allotment::Denied;
use crate::writes::Heard;
use windlass_protocol::NoSuccess;
use windlass_protocol::pod::Limits;
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
        /// It has ended by itself: the kubelet rejected it, or it was evicted.
        has_ended: bool,
    },
}

/// A resize of a VM's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// The VM, by its pod.
    pub vm: VmName,
    /// Which pod.
    pub uid: String,
    /// Which revision of it, and no other.
    pub revision: String,
    /// The container that is resized.
    pub container: String,
    /// What it is to request for the VM.
    pub to: Resources,
    /// What of its limits is the VM's after that, where it has any.
    pub limits: Limits,
    /// What it requests and may use besides.
    pub overhead: Resources,
    /// What it is for.
    pub kind: Kind,
}

/// What a resize is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The VM is to have more.
    Grows,
    /// The VM gave room back.
    Shrinks,
    /// The pod asks again for what it has: it is not given more.
    GivesUp(Denied),
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

    /// Of a resize of a VM's pod by its answer, and what that says of the API server. Where the pod is another or gone, the
    /// watch will show that; a busy API server says so, too, and then the same is written again.
    pub const fn of_resize<T>(answer: &Result<T, NoSuccess>) -> (Self, Heard) {
        match answer {
            Ok(_) => (Self::Answered, Heard::Answered),
            Err(NoSuccess::Gone | NoSuccess::Conflict) => (Self::Unknown, Heard::Answered),
            Err(NoSuccess::Invalid | NoSuccess::Refused) => (Self::Refused, Heard::Answered),
            Err(NoSuccess::Unknown) => (Self::Unknown, Heard::NoAnswer),
        }
    }
}

// === impl Kind ===

impl Kind {
    /// As it is counted.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Grows => "grow",
            Self::Shrinks => "shrink",
            Self::GivesUp(_) => "give-up",
        }
    }
}
