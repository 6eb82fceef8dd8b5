//! How far the books are rebuilt for the epoch in which this process leads.
//!
//! A standby follows the API server as a leader does, but its watch may be behind what the leader before it did. So the pods are
//! listed anew once an epoch has begun, and that list is newer than everything that an earlier leader bound or recorded. A
//! binding that an earlier leader sent may still come: each pod that the list shows unbound is changed first
//! ([`takeover`](crate::takeover)).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::sync::watch;
use windlass_protocol::VmName;
use windlass_protocol::pod::Pod;

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Why this process does not answer at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotYet {
    /// The lease is another's, or nobody's.
    #[error("this plugin does not lead: another one may hold the lease")]
    NotLeading,
    /// Not all nodes and pods were listed.
    #[error(
        "the books are not rebuilt yet: not all nodes and pods were listed since the plugin began to lead"
    )]
    NotRebuilt,
    /// A binding of an earlier leader may still take effect.
    #[error(
        "pods that were not bound when the plugin began to lead are being changed, so that no earlier binding takes effect"
    )]
    TakingOver,
}

/// What was listed, and what is left to do. Epochs are counted from one here: the process has begun so many.
#[derive(Debug)]
pub(crate) struct Rebuild {
    has_nodes: AtomicBool,
    /// How many epochs have begun.
    begun: watch::Sender<u64>,
    /// The epoch since whose begin the pods were listed, and the one for which everything is done.
    listed: AtomicU64,
    done: AtomicU64,
    /// Pods whose revision may be one that an earlier leader sent a binding for.
    inherited: Mutex<BTreeSet<(VmName, String)>>,
}

// === impl NotYet ===

impl NotYet {
    /// In the words of the scheduler's extender.
    pub(crate) fn to_scheduler(self) -> String {
        format!("windlass: {self}")
    }

    /// As it is counted.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::NotLeading => "not-leading",
            Self::NotRebuilt | Self::TakingOver => "not-rebuilt",
        }
    }

    /// In short, for agents.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NotLeading => "this plugin does not lead",
            Self::NotRebuilt => "the books are not rebuilt yet",
            Self::TakingOver => "an earlier binding may still take effect",
        }
    }
}

// === impl Rebuild ===

impl Default for Rebuild {
    fn default() -> Self {
        Self {
            has_nodes: AtomicBool::default(),
            begun: watch::Sender::new(1),
            listed: AtomicU64::default(),
            done: AtomicU64::default(),
            inherited: Mutex::default(),
        }
    }
}

impl Rebuild {
    /// Another epoch begins: what was listed before does not count.
    pub(crate) fn begin(&self) {
        self.begun.send_modify(|begun| *begun += 1);
    }

    /// Tells when the pods are to be listed anew, and for which epoch.
    pub(crate) fn lists(&self) -> watch::Receiver<u64> {
        self.begun.subscribe()
    }

    /// How many epochs have begun.
    pub(crate) fn begun(&self) -> u64 {
        *self.begun.borrow()
    }

    pub(crate) fn nodes_listed(&self) {
        self.has_nodes.store(true, Ordering::Release);
    }

    /// Whether no list of this epoch, or a later one, was noted yet.
    pub(crate) fn is_first(&self, epoch: u64) -> bool {
        epoch > self.listed.load(Ordering::Acquire)
    }

    /// These are the pods; the list began in this epoch. What it says was noted before.
    pub(crate) fn pods_listed(&self, epoch: u64, inherited: BTreeSet<(VmName, String)>) {
        let mut left = self.inherited();
        if self.is_first(epoch) {
            *left = inherited;
            self.listed.store(epoch, Ordering::Release);
            self.settle(&left);
        }
    }

    /// The pods that a list shows unbound, and that an earlier leader may have sent a binding for.
    pub(crate) fn unbound(pods: &[Pod]) -> BTreeSet<(VmName, String)> {
        let inherited = pods.iter().filter(|pod| is_inherited(pod));
        inherited.map(|pod| (pod.name.clone(), pod.uid.clone())).collect()
    }

    /// The pods that may still be bound by an earlier leader; none before the list of this epoch.
    pub(crate) fn left(&self) -> Vec<(VmName, String)> {
        let left = self.inherited();
        let is_listed = self.listed.load(Ordering::Acquire) == self.begun();
        if is_listed { left.iter().cloned().collect() } else { Vec::new() }
    }

    /// No earlier binding can take effect on this pod any more.
    pub(crate) fn inherit(&self, pod: &(VmName, String)) {
        let mut left = self.inherited();
        left.remove(pod);
        self.settle(&left);
    }

    /// Whether all nodes, and since the epoch began all pods, were listed.
    pub(crate) fn is_rebuilt(&self) -> bool {
        self.has_nodes.load(Ordering::Acquire)
            && self.listed.load(Ordering::Acquire) == self.begun()
    }

    /// Whether, besides, no binding of an earlier leader can take effect.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.begun()
    }

    fn settle(&self, left: &BTreeSet<(VmName, String)>) {
        if left.is_empty() {
            self.done.store(self.listed.load(Ordering::Acquire), Ordering::Release);
        }
    }

    fn inherited(&self) -> MutexGuard<'_, BTreeSet<(VmName, String)>> {
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an earlier leader may have sent a binding for a pod of a list. Pods of Kubernetes' own scheduler come to a
/// plugin only if they are VMs.
fn is_inherited(pod: &Pod) -> bool {
    let is_ours = pod.vm.is_some() || pod.scheduler != DEFAULT_SCHEDULER;
    is_ours && pod.node.is_none() && !pod.phase.is_ended()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_one_first_list() {
        let rebuild = Rebuild::default();
        let pod = || BTreeSet::from([(VmName::on_host("a"), "uid".to_owned())]);
        assert!(rebuild.is_first(1));
        rebuild.pods_listed(1, pod());
        assert!(!rebuild.is_first(1), "a watch that failed lists again in the same epoch");
        rebuild.pods_listed(1, BTreeSet::new());
        assert_eq!(rebuild.left().len(), 1, "what the first list left to do is still to be done");
        rebuild.begin();
        assert!(rebuild.is_first(2) && rebuild.left().is_empty());
    }
}
