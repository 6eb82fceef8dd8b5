//! How far the books are rebuilt for the epoch in which a process leads.
//!
//! A standby follows the API server as a leader does, but its watch may be behind what the leader before it did, or have lost an event that
//! the leader knew of. So nodes, pods and objects are listed anew once an epoch has begun, and these lists are newer than everything that an earlier leader bound or recorded. A
//! binding that an earlier leader sent may still come: it carries its pod's revision, so each pod that the list shows unbound is
//! changed before anything is answered. One that cannot be changed is waited for until every earlier binding is too old.

use std::collections::BTreeSet;
use std::time::Duration;
use thiserror::Error;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Moment, VmName};

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The API server gives up a request after a minute: what was sent before this process began to lead is carried out by
/// then, or never.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(65);

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

/// A pod, by name and uid.
pub type Inherited = (VmName, String);

/// What was listed, and what is left to do. Epochs are counted from one here: the process has begun so many.
#[derive(Clone, Debug)]
pub struct Rebuild {
    /// The epoch since whose begin the nodes were listed.
    nodes: u64,
    /// The epoch since whose begin the objects of VMs were listed; `None`: they are not followed.
    objects: Option<u64>,
    /// How many epochs have begun.
    begun: u64,
    /// The epoch since whose begin the pods were listed, and the one for which everything is done.
    listed: u64,
    done: u64,
    /// When they were listed.
    since: Moment,
    /// Pods whose revision may be one that an earlier leader sent a binding for.
    inherited: BTreeSet<Inherited>,
}

// === impl NotYet ===

impl NotYet {
    /// In the words of the scheduler's extender.
    pub fn to_scheduler(self) -> String {
        format!("windlass: {self}")
    }

    /// As it is counted.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotLeading => "not-leading",
            Self::NotRebuilt | Self::TakingOver => "not-rebuilt",
        }
    }

    /// In short, for agents.
    pub const fn as_str(self) -> &'static str {
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
            nodes: 0,
            objects: None,
            begun: 1,
            listed: 0,
            done: 0,
            since: Moment::default(),
            inherited: BTreeSet::new(),
        }
    }
}

impl Rebuild {
    /// Another epoch begins: what was listed before does not count.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// How many epochs have begun.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// The nodes were listed; the list began in this epoch.
    pub fn nodes_listed(&mut self, epoch: u64) {
        self.nodes = self.nodes.max(epoch);
    }

    /// The objects of VMs are followed, too.
    pub const fn follow_objects(&mut self) {
        self.objects = Some(0);
    }

    /// The objects of VMs were listed; the list began in this epoch.
    pub fn objects_listed(&mut self, epoch: u64) {
        self.objects = self.objects.map(|listed| listed.max(epoch));
    }

    /// Whether no list of this epoch, or a later one, was noted yet.
    pub const fn is_first(&self, epoch: u64) -> bool {
        epoch > self.listed
    }

    /// These are the pods; the list began in this epoch. What it says was noted before.
    pub fn pods_listed(&mut self, now: Moment, epoch: u64, inherited: BTreeSet<Inherited>) {
        if self.is_first(epoch) {
            (self.inherited, self.listed, self.since) = (inherited, epoch, now);
            self.settle();
        }
    }

    /// The pods that a list shows unbound, and that an earlier leader may have sent a binding for.
    pub fn unbound(pods: &[Pod]) -> BTreeSet<Inherited> {
        let inherited = pods.iter().filter(|pod| is_inherited(pod));
        inherited.map(|pod| (pod.name.clone(), pod.uid.clone())).collect()
    }

    /// The pods that may still be bound by an earlier leader; none before the list of this epoch.
    pub fn left(&self) -> Vec<Inherited> {
        if self.listed == self.begun {
            self.inherited.iter().cloned().collect()
        } else {
            Vec::new()
        }
    }

    /// The same pods, once every earlier binding is too old to take effect: they are waited for no longer.
    pub fn take_too_old(&mut self, now: Moment) -> Vec<Inherited> {
        if now.since(self.since) <= CARRIED_OUT_WITHIN {
            return Vec::new();
        }
        let left = self.left();
        left.iter().for_each(|pod| self.inherit(pod));
        left
    }

    /// No earlier binding can take effect on this pod any more.
    pub fn inherit(&mut self, pod: &Inherited) {
        self.inherited.remove(pod);
        self.settle();
    }

    /// Whether all nodes, pods and objects of VMs were listed since the epoch began.
    pub const fn is_rebuilt(&self) -> bool {
        let has_objects = match self.objects {
            Some(listed) => listed == self.begun,
            None => true,
        };
        self.nodes == self.begun && has_objects && self.listed == self.begun
    }

    /// Whether, besides, no binding of an earlier leader can take effect.
    pub const fn is_done(&self) -> bool {
        self.done == self.begun
    }

    /// Whether a process that leads may answer.
    ///
    /// # Errors
    /// Why it may not.
    pub const fn serves(&self) -> Result<(), NotYet> {
        if !self.is_rebuilt() {
            Err(NotYet::NotRebuilt)
        } else if self.is_done() {
            Ok(())
        } else {
            Err(NotYet::TakingOver)
        }
    }

    fn settle(&mut self) {
        if self.inherited.is_empty() {
            self.done = self.listed;
        }
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

    const NOW: Moment = Moment::from_millis(1_000_000);

    #[test]
    fn an_epoch_has_one_first_list() {
        let mut rebuild = Rebuild::default();
        assert!(rebuild.is_first(1));
        rebuild.pods_listed(NOW, 1, pod());
        assert!(!rebuild.is_first(1), "a watch that failed lists again in the same epoch");
        rebuild.pods_listed(NOW, 1, BTreeSet::new());
        assert_eq!(rebuild.left().len(), 1, "what the first list left to do is still to be done");
        rebuild.begin();
        assert!(rebuild.is_first(2) && rebuild.left().is_empty());
    }

    #[test]
    fn an_epoch_is_answered_in_once_every_earlier_binding_is_fenced_or_too_old() {
        let mut rebuild = Rebuild::default();
        rebuild.nodes_listed(1);
        assert_eq!(rebuild.serves(), Err(NotYet::NotRebuilt));
        rebuild.pods_listed(NOW, 1, pod());
        assert_eq!(rebuild.serves(), Err(NotYet::TakingOver));
        let mut other = rebuild.clone();
        let [left] = rebuild.left().try_into().unwrap();
        rebuild.inherit(&left);
        assert_eq!(rebuild.serves(), Ok(()));
        assert!(other.take_too_old(NOW.after(CARRIED_OUT_WITHIN)).is_empty());
        let later = NOW.after(CARRIED_OUT_WITHIN + Duration::from_millis(1));
        assert_eq!(other.take_too_old(later).len(), 1);
        assert_eq!(other.serves(), Ok(()));
    }

    /// A standby's watch may have lost that a node shrank, which the leader before it knew.
    #[test]
    fn nodes_that_were_listed_before_an_epoch_began_do_not_count() {
        let mut rebuild = Rebuild::default();
        rebuild.nodes_listed(1);
        rebuild.begin();
        rebuild.pods_listed(NOW, 2, BTreeSet::new());
        assert_eq!(rebuild.serves(), Err(NotYet::NotRebuilt));
        rebuild.nodes_listed(1);
        assert_eq!(rebuild.serves(), Err(NotYet::NotRebuilt), "that list began before");
        rebuild.nodes_listed(2);
        assert_eq!(rebuild.serves(), Ok(()));
    }

    fn pod() -> BTreeSet<Inherited> {
        BTreeSet::from([(VmName::on_host("a"), "uid".to_owned())])
    }
}
