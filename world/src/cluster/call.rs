//! What is asked of the API server, and what it answers.

use std::rc::Rc;
use windlass_plugin_core::lease::{Record, Write};
use windlass_plugin_core::pods::{Change, Resize};
use windlass_protocol::VmName;
use windlass_protocol::node::Node;
use windlass_protocol::pod::{Ceiling, Pod};

/// What a watch is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nodes,
    Pods,
}

/// A request of a plugin.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    LeaseRead,
    LeaseWrite(Write),
    Read(VmName),
    /// Binds a revision of a pod, and records its first ceiling.
    Bind {
        pod: VmName,
        uid: String,
        revision: String,
        node: String,
        ceiling: Option<Ceiling>,
    },
    /// Gives a pod another revision.
    Annotate {
        pod: VmName,
        uid: String,
    },
    /// Replaces the ceiling that was found.
    Replace {
        pod: VmName,
        uid: String,
        found: Found,
        next: Ceiling,
    },
    Headroom(Change),
    /// Resizes the container of a VM.
    Resize(Resize),
    List(Kind),
    /// Goes on with a watch.
    Watch {
        from: u64,
    },
}

/// The annotation of a pod, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// This one.
    Ceiling(Ceiling),
    /// None, at this revision of the pod.
    Absent(String),
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Lease(Option<Record>),
    LeaseWritten(Record),
    Pod(Option<Rc<Pod>>),
    Done,
    Pods(Vec<Rc<Pod>>, u64),
    Nodes(Vec<Rc<Node>>, u64),
    /// No success, by its HTTP status.
    Status(u16),
}

/// What a watch tells of.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Pod(Rc<Pod>),
    PodGone(Rc<Pod>),
    Node(Rc<Node>),
    NodeGone(Rc<Node>),
}

// === impl Found ===

impl Found {
    pub(crate) fn of(pod: &Pod) -> Self {
        let ceiling = pod.vm.as_ref().and_then(|vm| vm.ceiling);
        ceiling.map_or_else(|| Self::Absent(pod.revision.clone()), Self::Ceiling)
    }

    pub(crate) const fn ceiling(&self) -> Option<Ceiling> {
        match self {
            Self::Ceiling(ceiling) => Some(*ceiling),
            Self::Absent(_) => None,
        }
    }
}

impl From<Ceiling> for Found {
    fn from(ceiling: Ceiling) -> Self {
        Self::Ceiling(ceiling)
    }
}

// === impl Told ===

impl Told {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Pod(_) | Self::PodGone(_) => Kind::Pods,
            Self::Node(_) | Self::NodeGone(_) => Kind::Nodes,
        }
    }
}
