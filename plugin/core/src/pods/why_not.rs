//! Why a pod is not placed on a node, in a sentence for the pod's condition.
//!
//! Of many nodes the scheduler counts how often each reason comes, and writes every reason into the pod's condition. So
//! a [`Reason`] names no node, nor what is free on it.

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

/// Why a pod is placed on none of several nodes, in the same words for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The nodes have too little room that is not reserved.
    #[error("too little {} is free: {} asked", name(*.axis), show(*.axis, *.asked))]
    NoRoom {
        /// The axis.
        axis: Axis,
        /// What the pod requests, as the books count it.
        asked: u64,
    },
    /// The books have no such nodes.
    #[error("the node is not known to the plugin yet")]
    UnknownNode,
    /// The pod is bound to another node, or may be.
    #[error("the pod is placed on node {0} already")]
    Elsewhere(String),
    /// The pod has ended, or is gone.
    #[error("pod {0} has ended or is gone")]
    Gone(VmName),
}

/// What a pod finds on several nodes, which are named as the caller names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sifted<'n> {
    /// The nodes that have room for it, or have it already.
    pub fit: Vec<&'n str>,
    /// The others, by the reason.
    pub others: Vec<(Reason, Vec<&'n str>)>,
}

/// Why a pod is not placed on one node, without a copy of any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit<'a> {
    NoRoom(Short),
    UnknownNode,
    /// Where the pod is placed.
    Elsewhere(&'a str),
    Gone(&'a VmName),
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

// === impl Reason ===

impl Reason {
    /// Whether room that comes free may change the answer.
    pub const fn is_for_room(&self) -> bool {
        match self {
            Self::NoRoom { .. } => true,
            Self::UnknownNode | Self::Elsewhere(_) | Self::Gone(_) => false,
        }
    }
}

// === impl Unfit ===

impl Unfit<'_> {
    /// Of this node.
    pub(crate) fn on(self, node: &str) -> WhyNot {
        let node = node.to_owned();
        match self {
            Self::NoRoom(short) => WhyNot::NoRoom { node, short },
            Self::UnknownNode => WhyNot::UnknownNode(node),
            Self::Elsewhere(placed) => WhyNot::Elsewhere { node, placed: placed.to_owned() },
            Self::Gone(pod) => WhyNot::Gone(pod.clone()),
        }
    }

    /// Of any node.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::NoRoom(Short { axis, asked, .. }) => Reason::NoRoom { axis, asked },
            Self::UnknownNode => Reason::UnknownNode,
            Self::Elsewhere(placed) => Reason::Elsewhere(placed.to_owned()),
            Self::Gone(pod) => Reason::Gone(pod.clone()),
        }
    }

    /// Whether another node has the same reason.
    pub(crate) fn is_like(self, other: Self) -> bool {
        match (self, other) {
            (Self::NoRoom(one), Self::NoRoom(other)) => {
                (one.axis, one.asked) == (other.axis, other.asked)
            }
            (one, other) => one == other,
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
        let (name, show) = (name(axis), |amount| show(axis, amount));
        write!(f, "{} of {name} asked, {} of {} free", show(asked), show(free), show(room))
    }
}

const fn name(axis: Axis) -> &'static str {
    match axis {
        Axis::Cpu => "cpu",
        Axis::Memory => "memory",
    }
}

/// An amount as pods and nodes have it.
fn show(axis: Axis, amount: u64) -> String {
    match axis {
        Axis::Cpu => cpu_text(MilliCpu::from_milli(amount)),
        Axis::Memory => Bytes::from_bytes(amount).to_string(),
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
            let why = Unfit::NoRoom(short).on("n1");
            assert_eq!(why.to_string(), words);
            assert!(why.is_for_room());
        }
        assert_eq!(Short::of(size(500, 1536), size(500, 1536), size(500, 1536)), None);
        assert!(!WhyNot::UnknownNode("n1".into()).is_for_room());
    }

    #[test]
    fn nodes_that_lack_the_same_have_one_reason() {
        let size = |milli, mib| Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(mib));
        let short = |asked, free| Unfit::NoRoom(Short::of(asked, free, size(8000, 8192)).unwrap());
        let one = short(size(1500, 64), size(500, 64));
        for (other, is_like) in [
            (short(size(1500, 64), size(0, 0)), true),
            (short(size(1499, 64), size(500, 64)), false),
            (short(size(500, 1500), size(500, 64)), false),
            (Unfit::UnknownNode, false),
        ] {
            assert_eq!(one.is_like(other), is_like, "{other:?}");
            assert_eq!(one.reason() == other.reason(), is_like, "{other:?}");
        }
        assert!(Unfit::Elsewhere("n1").is_like(Unfit::Elsewhere("n1")));
        assert!(one.reason().is_for_room() && !Unfit::Elsewhere("n1").reason().is_for_room());
    }

    #[test]
    fn a_reason_for_several_nodes_names_none_of_them() {
        let size = |milli, mib| Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(mib));
        let short = |asked| Short::of(asked, size(500, 1536), size(4000, 16_384)).unwrap();
        let pod = VmName { namespace: "tenants".into(), name: "db1".into() };
        for (unfit, words) in [
            (Unfit::NoRoom(short(size(1500, 0))), "too little cpu is free: 1500m asked"),
            (Unfit::NoRoom(short(size(0, 4096))), "too little memory is free: 4GiB asked"),
            (Unfit::UnknownNode, "the node is not known to the plugin yet"),
            (Unfit::Elsewhere("n2"), "the pod is placed on node n2 already"),
            (Unfit::Gone(&pod), "pod tenants/db1 has ended or is gone"),
        ] {
            assert_eq!(unfit.reason().to_string(), words);
        }
    }
}
