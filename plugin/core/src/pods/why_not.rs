//! Why a pod is not placed on a node, in a sentence for the pod's condition.

use std::fmt;
use thiserror::Error;
use windlass_protocol::quantity::cpu_text;
use windlass_protocol::{Axis, Bytes, MilliCpu, Resources, VmName};

/// Why a pod is not placed on a node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WhyNot {
    /// The node has too little room that is not reserved.
    #[error("node {node}: {short}")]
    NoRoom {
        /// The node.
        node: String,
        /// What is short.
        short: Short,
    },
    /// The books have no such node.
    #[error("node {0}: not known to the plugin yet")]
    UnknownNode(String),
    /// The pod is bound to another node, or may be: a binding to it is under way.
    #[error("node {node}: the pod is placed on node {placed} already")]
    Elsewhere {
        /// The node that was asked.
        node: String,
        /// The node that has the pod.
        placed: String,
    },
    /// The pod has ended, or is gone.
    #[error("pod {0} has ended or is gone")]
    Gone(VmName),
}

/// One axis on which a node has too little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// The axis.
    pub axis: Axis,
    /// What the pod requests, as the books count it.
    pub asked: u64,
    /// What is reserved for no pod.
    pub free: u64,
    /// What there is for VMs.
    pub room: u64,
}

// === impl WhyNot ===

impl WhyNot {
    /// Whether room that comes free may change the answer.
    pub const fn is_for_room(&self) -> bool {
        match self {
            Self::NoRoom { .. } => true,
            Self::UnknownNode(_) | Self::Elsewhere { .. } | Self::Gone(_) => false,
        }
    }
}

// === impl Short ===

impl Short {
    /// The first axis on which `asked` is more than is free of this room.
    pub(crate) fn of(asked: Resources, free: Resources, room: Resources) -> Option<Self> {
        let short = |axis: &Axis| axis.of(asked) > axis.of(free);
        let axis = [Axis::Cpu, Axis::Memory].into_iter().find(short)?;
        let [asked, free, room] = [asked, free, room].map(|amount| axis.of(amount));
        Some(Self { axis, asked, free, room })
    }
}

/// `1500m of cpu asked, 500m of 4 free`, as pods and nodes have it.
impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { axis, asked, free, room } = *self;
        let (show, name): (fn(u64) -> String, _) = match axis {
            Axis::Cpu => (|amount| cpu_text(MilliCpu::from_milli(amount)), "cpu"),
            Axis::Memory => (|amount| Bytes::from_bytes(amount).to_string(), "memory"),
        };
        write!(f, "{} of {name} asked, {} of {} free", show(asked), show(free), show(room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_is_asked_and_what_is_free() {
        let size = |milli, mib| Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(mib));
        for (asked, words) in [
            (size(1500, 9999), "node n1: 1500m of cpu asked, 500m of 4 free"),
            (size(500, 4096), "node n1: 4GiB of memory asked, 1.5GiB of 16GiB free"),
        ] {
            let short = Short::of(asked, size(500, 1536), size(4000, 16_384)).unwrap();
            let why = WhyNot::NoRoom { node: "n1".into(), short };
            assert_eq!(why.to_string(), words);
            assert!(why.is_for_room());
        }
        assert_eq!(Short::of(size(500, 1536), size(500, 1536), size(500, 1536)), None);
        assert!(!WhyNot::UnknownNode("n1".into()).is_for_room());
    }
}
