//! Who has how much of a node, by the API server's objects and the permits that agents use; it knows nothing of our books.
//!
//! Every event is judged when it is noted: no node ever has more taken than it can allocate. What is taken less is noted
//! before anybody is told of it, and what is taken more after it was allowed, so a fault that is seen is one.

use std::collections::{BTreeMap, BTreeSet};

/// Pods of nodes that can all allocate the same, in thousandths of a vCPU.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    allocatable: i64,
    pods: BTreeMap<String, Taken>,
    gone: BTreeSet<String>,
    events: u64,
}

#[derive(Debug, Default)]
struct Taken {
    node: Option<String>,
    requests: i64,
    has: i64,
    /// It was not permitted anything since [`Judge::ask_of_all`].
    is_unheard: bool,
}

// === impl Judge ===

impl Judge {
    /// Of nodes that can allocate so much.
    pub(crate) fn of(allocatable: i64) -> Self {
        Self { allocatable, ..Self::default() }
    }

    /// A pod is on a node, and requests so much.
    pub(crate) fn runs(&mut self, pod: &str, node: &str, requests: i64) {
        // A watch tells late of what is gone.
        if self.gone.contains(pod) {
            return;
        }
        let taken = self.pods.entry(pod.to_owned()).or_default();
        (taken.node, taken.requests) = (Some(node.to_owned()), requests);
        self.judge(node, &format!("{pod} runs"));
    }

    /// A VM has so much.
    pub(crate) fn has(&mut self, pod: &str, size: i64) {
        let taken = self.pods.entry(pod.to_owned()).or_default();
        taken.has = size;
        if let Some(node) = taken.node.clone() {
            self.judge(&node, &format!("{pod} has {size}m"));
        }
    }

    /// Its agent was permitted something.
    pub(crate) fn is_heard(&mut self, pod: &str) {
        self.pods.entry(pod.to_owned()).or_default().is_unheard = false;
    }

    /// From here on it counts who is permitted something.
    pub(crate) fn ask_of_all(&mut self) {
        self.pods.values_mut().for_each(|taken| taken.is_unheard = taken.node.is_some());
    }

    /// The VMs that were on a node and have been permitted nothing since.
    pub(crate) fn unheard(&self) -> usize {
        self.pods.values().filter(|taken| taken.is_unheard).count()
    }

    /// A pod is about to be deleted, and runs no more.
    pub(crate) fn ends(&mut self, pod: &str) {
        self.pods.remove(pod);
        self.gone.insert(pod.to_owned());
    }

    /// The node that a pod was seen on.
    pub(crate) fn node_of(&self, pod: &str) -> Option<&str> {
        self.pods.get(pod)?.node.as_deref()
    }

    /// What each VM has that is on a node.
    pub(crate) fn sizes(&self) -> BTreeMap<String, i64> {
        let placed = self.pods.iter().filter(|(_, taken)| taken.node.is_some());
        placed.map(|(pod, taken)| (pod.clone(), taken.has)).collect()
    }

    /// How many events were judged.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    fn judge(&mut self, node: &str, event: &str) {
        self.events += 1;
        let here = || self.pods.iter().filter(|(_, taken)| taken.node.as_deref() == Some(node));
        let sum: i64 = here().map(|(_, taken)| taken.requests.max(taken.has)).sum();
        assert!(
            sum <= self.allocatable,
            "event {}, {event}: {sum}m of {}m of node {node}: {:?}",
            self.events,
            self.allocatable,
            here().collect::<Vec<_>>()
        );
    }
}
