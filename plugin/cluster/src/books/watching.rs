//! Nodes and pods, as the API server tells of them; and the pods that an earlier leader may still bind.

use super::{ClusterBooks, ClusterNode, Inner};
use crate::rebuild::Rebuild;
use windlass_plugin::Shared;
use windlass_plugin_core::Books;
use windlass_plugin_core::pods::audit::{Audit, Looked, Page};
use windlass_protocol::pod::Pod;
use windlass_protocol::{Resources, VmName, node};

// === impl ClusterBooks ===

impl ClusterBooks {
    /// These are the nodes from here on.
    pub fn nodes_listed(&self, nodes: Vec<node::Node>) {
        self.nodes_listed_in(self.0.rebuild.begun(), nodes);
    }

    /// The same, where the list began in this epoch of the process.
    pub(crate) fn nodes_listed_in(&self, epoch: u64, nodes: Vec<node::Node>) {
        let nodes = nodes.into_iter().map(|node| self.with_reserve(node)).collect();
        let freed = self.write().nodes_listed(nodes, |node| self.hold(&node.name));
        self.note(freed);
        self.0.rebuild.nodes_listed(epoch);
    }

    /// The watch shows a node.
    pub fn node_seen(&self, node: node::Node) {
        let node = self.with_reserve(node);
        let freed = self.write().node_seen(&node, || self.hold(&node.name));
        self.note(freed);
    }

    /// The watch shows that a node is gone.
    pub fn node_gone(&self, name: &str) {
        self.write().node_gone(name);
    }

    /// These are the pods from here on.
    pub fn pods_listed(&self, pods: Vec<Pod>) {
        self.pods_listed_in(self.0.rebuild.begun(), pods);
    }

    /// The same, where the list began in this epoch of the process.
    pub(crate) fn pods_listed_in(&self, epoch: u64, pods: Vec<Pod>) {
        let (mut inherited, vms) = (Rebuild::unbound(&pods), vms(&pods));
        let mut all = self.write();
        let freed = all.pods_listed(pods);
        if self.0.rebuild.is_first(epoch) {
            inherited.extend(all.inherit_headroom());
            inherited.extend(all.inherit_resizes());
        }
        drop(all);
        self.note(freed);
        self.resize_seen(&vms);
        self.0.rebuild.pods_listed(self.now(), epoch, inherited);
    }

    /// The pods that may still be bound by an earlier leader.
    pub(crate) fn inherited(&self) -> Vec<(VmName, String)> {
        self.0.rebuild.left()
    }

    /// Takes those whose earlier bindings are too old to take effect.
    pub(crate) fn take_too_old(&self) -> Vec<(VmName, String)> {
        let too_old = self.0.rebuild.take_too_old(self.now());
        for (name, uid) in &too_old {
            self.write().inherited_is_too_old(name, uid);
        }
        too_old
    }

    /// No binding of an earlier leader can take effect on this pod any more. It may have taken effect before, and the watch
    /// may not show it yet.
    pub(crate) fn inherit(&self, inherited: &(VmName, String), pod: Option<Pod>) {
        if let Some(pod) = pod.filter(|pod| pod.node.is_some()) {
            let vms = vms(std::slice::from_ref(&pod));
            let freed = self.write().pod_read(pod);
            self.note(freed);
            self.resize_seen(&vms);
        }
        self.0.rebuild.inherit(inherited);
    }

    /// The watch shows a pod.
    pub fn pod_seen(&self, pod: Pod) {
        let vms = vms(std::slice::from_ref(&pod));
        let freed = self.write().pod_seen(pod);
        self.note(freed);
        self.resize_seen(&vms);
    }

    /// The watch shows that a pod is gone.
    pub fn pod_gone(&self, name: &VmName, uid: &str) {
        let freed = self.write().pod_gone(name, uid);
        self.note(freed);
        self.settle_resize(name);
    }

    /// Compares nodes of the API server with those that are known.
    pub(crate) fn audit_nodes(
        &self,
        audit: &mut Audit<String>,
        page: Page<String>,
    ) -> Looked<String> {
        let pods = self.read();
        audit.look(page, pods.nodes().count(), |name| pods.node_revision(name))
    }

    /// Compares pods of the API server with those that are known.
    pub(crate) fn audit_pods(
        &self,
        audit: &mut Audit<VmName>,
        page: Page<VmName>,
    ) -> Looked<VmName> {
        let pods = self.read();
        audit.look(page, pods.count(), |name| pods.pod_revision(name))
    }

    fn hold(&self, name: &str) -> ClusterNode {
        let Inner { terms, clock, requests, .. } = &*self.0;
        let none = Books::new(Resources::ZERO);
        let books = Shared::counting(none, terms.unit, *clock, requests.clone());
        ClusterNode { name: name.into(), books }
    }

    fn with_reserve(&self, node: node::Node) -> node::Node {
        let allocatable = node.allocatable.saturating_sub(self.0.terms.reserve);
        node::Node { allocatable, ..node }
    }
}

/// The pods that are VMs.
fn vms(pods: &[Pod]) -> Vec<VmName> {
    let vms = pods.iter().filter(|pod| pod.vm.is_some());
    vms.map(|pod| pod.name.clone()).collect()
}
