//! What is asked of the API server, and what it answers.

use crate::cluster::vm_objects::Shown;
use serde_json::Value;
use std::rc::Rc;
use windlass_plugin_core::lease::{Record, Write};
use windlass_plugin_core::pods::{CeilingOn, Change, Migration, Move, Resize};
use windlass_protocol::VmName;
use windlass_protocol::node::Node;
use windlass_protocol::pod::{Ceiling, Pod};
use windlass_protocol::vm_object::Machine;

/// What a watch is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nodes,
    Pods,
    Objects,
    Migrations,
}

/// A request of a plugin or of the agent of a node.
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
        on: CeilingOn,
        found: Found,
        next: Ceiling,
    },
    ReadObject(VmName),
    /// Labels an object with a node.
    Label {
        name: VmName,
        uid: String,
        label: String,
    },
    /// Changes an object that was looked at.
    Patch {
        looked: Box<Machine>,
        patch: Value,
    },
    Headroom(Change),
    /// Resizes the container of a VM.
    Resize(Resize),
    /// Asks for a migration.
    Begin(Move),
    ReadMigration(VmName),
    /// Deletes the migration with this uid.
    EndMigration {
        name: VmName,
        uid: String,
    },
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
    /// None, or whatever there is, at this revision of the pod or object.
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
    Object(Option<Rc<Shown>>),
    Objects(Vec<Rc<Shown>>, u64),
    Migrations(Vec<Migration>, u64),
    Migration(Option<Rc<Migration>>),
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
    Object(Rc<Shown>),
    ObjectGone(Rc<Shown>),
    Migration(Rc<Migration>),
    MigrationGone(Rc<Migration>),
}

// === impl Found ===

impl Found {
    pub(crate) fn of(pod: &Pod) -> Self {
        let ceiling = pod.vm.as_ref().and_then(|vm| vm.ceiling);
        ceiling.map_or_else(|| Self::Absent(pod.revision.clone()), Self::Ceiling)
    }

    pub(crate) fn on(object: &Shown) -> Self {
        let revision = || Self::Absent(object.object.revision.clone());
        object.object.ceiling.map_or_else(revision, Self::Ceiling)
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
            Self::Object(_) | Self::ObjectGone(_) => Kind::Objects,
            Self::Migration(_) | Self::MigrationGone(_) => Kind::Migrations,
        }
    }
}
