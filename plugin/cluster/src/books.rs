//! The books of a cluster, for all parts of the process that use them.
//!
//! The map of nodes and pods has a lock of its own, and each node's books have another: neither is held across an
//! `.await`. Filter and prioritize read the map and what nodes publish, and take no lock of a node.

pub(crate) mod moving;
mod objects;
mod permits;
mod resizes;
mod views;

use crate::leadership::{Epoch, Leadership};
use crate::proposals::Proposals;
use crate::rebuild::{NotYet, Rebuild};
use crate::waits::Waits;
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;
use tokio::sync::watch;
use windlass_kit::clock::Clock;
use windlass_kit::stops::{self, Stops};
use windlass_plugin::Shared;
use windlass_plugin::metrics::{NodeFigures, Requests, register_nodes};
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::audit::{Audit, Looked, Page};
use windlass_plugin_core::pods::{
    Change, Freed, NodePods, Outcome, Pools, Settled, Sifted, Written,
};
use windlass_plugin_core::wire::Refusal;
use windlass_plugin_core::{Books, Pods, Summary};
use windlass_protocol::extender::{HostPriority, PreemptionArgs, PreemptionResult, Score};
use windlass_protocol::pod::Pod;
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{ComputeUnit, Moment, Resources, VmName, node};

/// The books of all nodes, as the API server's objects tell. Clones share them.
#[derive(Clone, Debug)]
pub struct ClusterBooks(Arc<Inner>);

/// One node of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterNode {
    name: Arc<str>,
    books: Shared,
}

/// How the nodes of a cluster are treated.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The compute unit for agents that have none of their own.
    pub unit: ComputeUnit,
    /// Kept of each node, beyond the pods on it.
    pub reserve: Resources,
    /// How nodes share their room between growth and placement.
    pub pools: Pools,
}

#[derive(Debug)]
struct Inner {
    pods: RwLock<Pods<ClusterNode>>,
    /// Nodes on which room came free, and refused pods were not told yet.
    freed: Mutex<BTreeSet<String>>,
    rebuild: Rebuild,
    /// Answers requests for VMs that no node has, and requests that cannot be understood.
    nowhere: Shared,
    clock: Clock,
    requests: Requests,
    terms: Terms,
    leadership: Leadership,
    /// When this process began to lead last, if it did.
    began: Mutex<Option<Instant>>,
    proposals: Proposals,
    /// The VMs whose pods are to be resized.
    resizes: Proposals,
    /// The requests that wait for the kubelets of their VMs.
    waits: Waits,
    stops: Stops,
    /// In which epoch this process answers agents, and since when.
    listening: Mutex<Option<(Epoch, Moment)>>,
}

/// The books as a person reads them who looks for a fault. Fields are only added.
#[derive(Debug, Serialize)]
pub struct Dump {
    /// When this was true.
    pub at: Moment,
    /// Whether all nodes and pods were listed since the start, and since the process began to lead.
    pub is_rebuilt: bool,
    /// The epoch in which the process answers, if it does.
    pub epoch: Option<u64>,
    /// What each node has, and which placements are under way.
    pub nodes: Vec<NodePods>,
    /// The VMs of each node that has any.
    pub vms: Vec<NodeStatus>,
}

// === impl ClusterBooks ===

impl ClusterBooks {
    /// Of no node yet.
    pub fn new(terms: Terms, clock: Clock, leadership: Leadership) -> Self {
        let requests = Requests::default();
        let none = Books::new(Resources::ZERO);
        let nowhere = Shared::counting(none, terms.unit, clock, requests.clone());
        Self(Arc::new(Inner {
            pods: RwLock::new(Pods::of(terms.pools.clone())),
            freed: Mutex::default(),
            rebuild: Rebuild::following(terms.pools.follows_objects),
            nowhere,
            clock,
            requests,
            terms,
            leadership,
            began: Mutex::default(),
            proposals: Proposals::default(),
            resizes: Proposals::default(),
            waits: Waits::default(),
            stops: Stops::new(clock),
            listening: Mutex::default(),
        }))
    }

    /// Whether this process may answer from these books.
    pub fn leadership(&self) -> &Leadership {
        &self.0.leadership
    }

    /// The epoch in which this process may answer from these books at this moment.
    ///
    /// # Errors
    /// Why it may not.
    pub fn serves(&self) -> Result<Epoch, NotYet> {
        let Inner { leadership, rebuild, .. } = &*self.0;
        let epoch = leadership.epoch().ok_or(NotYet::NotLeading)?;
        rebuild.serves().map(|()| epoch)
    }

    /// Whether all nodes and pods were listed since the start, and since the process began to lead.
    pub fn is_rebuilt(&self) -> bool {
        self.0.rebuild.is_rebuilt()
    }

    /// This process begins to lead: what was listed before does not count.
    pub(crate) fn begin_epoch(&self) {
        *lock(&self.0.began) = Some(Instant::now());
        self.0.rebuild.begin();
    }

    /// Whether this process began to lead after this moment.
    pub(crate) fn began_after(&self, moment: Instant) -> bool {
        lock(&self.0.began).is_some_and(|began| moment < began)
    }

    /// Tells when everything is to be listed anew, and for which epoch.
    pub(crate) fn lists(&self) -> watch::Receiver<u64> {
        self.0.rebuild.lists()
    }

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

    /// Which of these nodes have room for a pod, and why the others have not. A VM pod that none has room for is
    /// remembered.
    pub fn filter<'n>(&self, pod: &Pod, nodes: &'n [String]) -> Sifted<'n> {
        let sifted = self.read().fits_each(pod, nodes);
        if sifted.fit.is_empty() && sifted.others.iter().any(|(why, _)| why.is_for_room()) {
            self.write().refused(pod);
        }
        sifted
    }

    /// How good each of these nodes is for a pod.
    pub fn prioritize(&self, pod: &Pod, nodes: Vec<String>) -> Vec<HostPriority> {
        let scores = self.read().scores(pod, &nodes);
        let score = |(host, score)| HostPriority { host, score: Score::at_most(score) };
        nodes.into_iter().zip(scores).map(score).collect()
    }

    /// The nodes that would have room for a pod without its victims there.
    pub fn preempt(&self, args: PreemptionArgs) -> PreemptionResult {
        let PreemptionArgs { pod, mut victims } = args;
        let pods = self.read();
        victims.retain(|node, victims| {
            let uids = victims.pods.iter().cloned().collect();
            pods.fits_without(&pod, node, &uids).is_ok()
        });
        PreemptionResult { victims }
    }

    /// Whether the watch shows a pod as this, on no node.
    pub(crate) fn shows(&self, pod: &Pod) -> bool {
        let pods = self.read();
        let is_known = pods.uid_of(&pod.name) == Some(&pod.uid)
            && pods.pod_revision(&pod.name) == Some(&pod.revision);
        is_known && pod.node.is_none()
    }

    /// What became of a binding.
    pub(crate) fn settle(&self, name: &VmName, uid: &str, outcome: Outcome) -> Settled {
        let settled = self.write().settle(name, uid, outcome);
        if let Settled::Released(freed) = &settled {
            self.note(freed.clone());
        }
        settled
    }

    /// The placements that no pod has shown yet, with the pods' uids.
    pub(crate) fn placements(&self) -> Vec<(VmName, String)> {
        let pods = self.read();
        pods.placements().map(|(name, uid, _)| (name.clone(), uid.to_owned())).collect()
    }

    /// What is to be written of headroom pods.
    pub(crate) fn headroom_plan(&self) -> Vec<Change> {
        let now = self.now();
        self.read().headroom_plan(now)
    }

    /// This change is sent now, unless VMs have grown into what it would give up.
    pub(crate) fn headroom_sent(&self, change: &Change) -> bool {
        self.write().headroom_sent(change)
    }

    /// What became of a change that was sent.
    pub(crate) fn headroom_written(&self, change: &Change, written: Written) {
        self.write().headroom_written(change, written);
    }

    /// Takes the nodes on which room came free, with the refused pods that fit there.
    pub(crate) fn take_freed(&self) -> Vec<(String, Vec<(VmName, String)>)> {
        let freed = std::mem::take(&mut *lock(&self.0.freed));
        let pods = self.read();
        let fit = |node: String| {
            let waiting = pods.waiting_for(&node).into_iter();
            let waiting = waiting.map(|pod| (pod.name.clone(), pod.uid.clone())).collect();
            (node, waiting)
        };
        freed.into_iter().map(fit).collect()
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

    /// A pod that was refused is gone.
    pub(crate) fn waits_no_longer(&self, name: &VmName, uid: &str) {
        self.write().waits_no_longer(name, uid);
    }

    /// The node that a VM is on, if the books know one.
    pub(crate) fn node_of(&self, vm: &VmName) -> Option<Arc<str>> {
        self.read().node_of(vm).map(|node| node.name.clone())
    }

    /// This moment.
    pub(crate) fn now(&self) -> Moment {
        self.0.clock.now()
    }

    /// This node is looked at again.
    pub(crate) fn note_freed(&self, node: &str) {
        lock(&self.0.freed).insert(node.to_owned());
    }

    /// Adds what is counted, and the gauges of nodes, to what a process exports.
    pub fn register(&self, registry: &mut Registry) {
        self.0.requests.register(registry);
        let books = self.clone();
        register_nodes(registry, move || {
            let figures = |(name, node): (&str, &ClusterNode)| {
                node.books.with_books(|books| NodeFigures::of(Some(name.to_owned()), books))
            };
            books.read().nodes().map(figures).collect()
        });
    }

    /// The books as a person debugging reads them.
    pub fn dump(&self) -> Dump {
        let at = self.0.clock.now();
        let pods = self.read();
        let vms = pods.nodes().map(|(_, node)| node.books.with_books(|books| books.status(at)));
        let vms = vms.filter(|node| !node.vms.is_empty()).collect();
        let is_rebuilt = self.is_rebuilt();
        let epoch = self.serves().ok().map(|Epoch(epoch)| epoch);
        Dump { at, is_rebuilt, epoch, nodes: pods.status_at(at), vms }
    }

    /// Notices that the process was stopped.
    pub fn stops(&self) -> &Stops {
        &self.0.stops
    }

    fn answers(&self) -> Result<(), Refusal> {
        if self.0.stops.is_just_over() {
            return Err(Refusal::Passing(stops::WORDS));
        }
        self.serves().map(drop).map_err(|not_yet| Refusal::Passing(not_yet.as_str()))
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

    fn note(&self, freed: Freed) {
        if !freed.is_empty() {
            lock(&self.0.freed).extend(freed.nodes().map(str::to_owned));
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Pods<ClusterNode>> {
        self.0.pods.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Pods<ClusterNode>> {
        self.0.pods.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ClusterNode ===

impl Node for ClusterNode {
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        self.books.with_books(ask)
    }

    fn summary(&self) -> Summary {
        self.books.summary()
    }
}

/// The pods that are VMs.
fn vms(pods: &[Pod]) -> Vec<VmName> {
    let vms = pods.iter().filter(|pod| pod.vm.is_some());
    vms.map(|pod| pod.name.clone()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
