//! What is read of the nodes and pods that are known: what is held of each node, and what people see of it.

use crate::cluster::Node;
use crate::hold::Hold;
use crate::pods::{NodePods, Open, Pods};
use crate::summary::Summary;
use std::collections::BTreeMap;
use windlass_protocol::{Moment, VmName};

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// The nodes that were seen, by name, and what is held of each.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &N)> {
        let nodes = self.nodes.in_order().into_iter();
        nodes.filter_map(|(name, held)| Some((&**name, &held.there()?.held)))
    }

    /// What is held of this node, if it was seen.
    pub fn node(&self, name: &str) -> Option<&N> {
        Some(&self.nodes.get(name)?.there()?.held)
    }

    /// The node that answers the agent of this VM, which every wire calls by its pod's name; `None` if no
    /// node has the pod.
    pub fn node_of(&self, vm: &VmName) -> Option<&N> {
        self.node(self.pods.get(vm).filter(|known| known.is_vm())?.place()?)
    }

    /// Every node that was seen, by name, with the pressure at this moment.
    pub fn status_at(&self, now: Moment) -> Vec<NodePods> {
        let mut all = self.status();
        let mut pressures: BTreeMap<_, _> =
            self.watermarks(now).map(|(name, _, pressure)| (name, pressure)).collect();
        for node in &mut all {
            node.pressure = pressures.remove(node.name.as_str());
        }
        all
    }

    /// Every node that was seen, by name.
    pub fn status(&self) -> Vec<NodePods> {
        let names = self.nodes.in_order().into_iter().map(|(name, _)| name);
        names.filter_map(|name| self.status_of(name)).collect()
    }

    /// One node, if it was seen.
    pub fn status_of(&self, name: &str) -> Option<NodePods> {
        let held = self.nodes.get(name)?;
        let seen = held.there()?;
        let Summary { room, reserved } = seen.held.summary();
        let Hold { is_cordoned, has_memory_pressure } = seen.hold;
        let open = held.pods.iter().filter_map(|name| {
            let known = self.pods.get(name)?;
            let (uid, reserved) = (known.uid.clone(), known.placed.reserved()?);
            known.placed.node()?;
            Some(Open { pod: (**name).clone(), uid, reserved, is_bound: known.placed.is_bound() })
        });
        Some(NodePods {
            name: name.to_owned(),
            allocatable: seen.allocatable,
            is_cordoned,
            has_memory_pressure,
            mode: seen.mode.word(),
            others: held.taken.others(),
            headroom: held.taken.headroom(),
            room,
            reserved,
            over: held.taken.over(seen.mode, seen.allocatable, reserved),
            watermark: seen.limit(),
            pressure: None,
            pods: held.pods.len(),
            placements: open.collect(),
            not_resized: held.pods.iter().filter_map(|name| self.not_resized(name)).collect(),
        })
    }

    /// The revision that is known of a node.
    pub fn node_revision(&self, name: &str) -> Option<&str> {
        Some(&self.nodes.get(name)?.there()?.revision)
    }

    /// The revision that is known of a pod.
    pub fn pod_revision(&self, name: &VmName) -> Option<&str> {
        Some(&self.pods.get(name)?.revision)
    }

    /// The uid of the pod that is known by this name.
    pub fn uid_of(&self, name: &VmName) -> Option<&str> {
        Some(&self.pods.get(name)?.uid)
    }

    /// How many pods are known, those that have ended too.
    pub fn count(&self) -> usize {
        self.pods.len()
    }
}
