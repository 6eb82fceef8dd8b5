//! The books of a cluster, for all parts of the process that use them.
//!
//! The map of nodes and pods has a lock of its own, and each node's books have another: neither is held across an
//! `.await`. Filter and prioritize read the map and what nodes publish, and take no lock of a node.

pub(crate) mod moving;
mod objects;
mod permits;
mod placements;
mod resizes;
mod views;
mod watching;

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
use windlass_plugin_core::pods::{Change, Freed, NodePods, Pools, Written};
use windlass_plugin_core::wire::Refusal;
use windlass_plugin_core::{Books, Pods, Summary};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{ComputeUnit, Moment, Resources, VmName};

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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
