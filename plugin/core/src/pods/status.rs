//! The nodes and their pods, as a person who looks for a fault reads them.

use crate::Summary;
use crate::cluster::Node;
use crate::pods::Pods;
use serde::Serialize;
use windlass_protocol::{Resources, VmName};

/// What a node has, and who takes it. Fields are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodePods {
    /// The node.
    pub name: String,
    /// What pods may request of it.
    pub allocatable: Resources,
    /// The requests of all pods that are no VMs.
    pub others: Resources,
    /// The room for VMs: what others leave.
    pub room: Resources,
    /// What is reserved for VMs.
    pub reserved: Resources,
    /// By how much others and VMs exceed what the node can allocate. While it does, nothing is granted or
    /// placed on that axis.
    pub over: Resources,
    /// How many pods count.
    pub pods: usize,
    /// The placements that no pod has shown yet, by the pod's name.
    pub placements: Vec<Open>,
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

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// Every node that was seen, by name.
    pub fn status(&self) -> Vec<NodePods> {
        self.nodes.keys().filter_map(|name| self.status_of(name)).collect()
    }

    /// One node, if it was seen.
    pub fn status_of(&self, name: &str) -> Option<NodePods> {
        let held = self.nodes.get(name)?;
        let seen = held.seen.as_ref()?;
        let Summary { room, reserved } = seen.held.summary();
        let open = held.pods.iter().filter_map(|name| {
            let known = self.pods.get(name)?;
            let (uid, reserved) = (known.uid.clone(), known.placed.reserved()?);
            known.placed.node()?;
            Some(Open { pod: name.clone(), uid, reserved, is_bound: known.placed.is_bound() })
        });
        Some(NodePods {
            name: name.to_owned(),
            allocatable: seen.allocatable,
            others: held.others(),
            room,
            reserved,
            over: held.over(reserved),
            pods: held.pods.len(),
            placements: open.collect(),
        })
    }
}
