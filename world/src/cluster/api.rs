//! The API server: objects, their revisions, and the log that watches read.
//!
//! A change gives an object another revision. A write that names a revision, a uid or a text takes effect on that alone. A watch
//! goes on from a revision, unless the log before it was compacted.

use crate::cluster::call::{Answer, Call, Found, Kind, Told};
use crate::cluster::pods::{count, headroom, resize};
use crate::cluster::vm_objects::Stored;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use windlass_plugin_core::lease::{Record, Write as LeaseWrite};
use windlass_plugin_core::pods::{CeilingOn, Change, Migration, Resize, Write};
use windlass_protocol::node::Node;
use windlass_protocol::pod::{Ceiling, Limits, Pod};
use windlass_protocol::{Resources, VmName};

/// The objects of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Api {
    pub(crate) revision: u64,
    pub(crate) pods: BTreeMap<VmName, Rc<Pod>>,
    pub(crate) nodes: BTreeMap<String, Rc<Node>>,
    /// The objects of NeonVM, and the migrations of their VMs.
    pub(crate) vms: BTreeMap<VmName, Stored>,
    pub(crate) migrations: BTreeMap<VmName, Rc<Migration>>,
    lease: Option<Record>,
    log: Vec<(u64, Told)>,
    compacted: u64,
    /// Nodes with pods that changed since the last look.
    touched: BTreeSet<String>,
    uids: u64,
    /// Names that a pod has or had.
    names: BTreeSet<VmName>,
    copy: Option<Copied>,
    /// Writes of the Lease since then.
    renewals: u32,
}

/// A copy of the store.
#[derive(Debug)]
struct Copied {
    revision: u64,
    pods: BTreeMap<VmName, Rc<Pod>>,
    nodes: BTreeMap<String, Rc<Node>>,
    lease: Option<Record>,
}

/// A standby has seen the Lease renewed since it was copied, once it was written so often: it knows that what it sees after the
/// API server went back is no Lease that nobody renews.
const SEEN_AFTER: u32 = 3;

/// Others of its objects are written so often after a copy: no revision is reached again before all is over.
const WRITES_OF_OTHERS: u64 = 1_000_000;

// === impl Api ===

impl Api {
    /// An operator makes a Lease that nobody has held.
    pub(crate) fn make_lease(&mut self) {
        self.write_lease(LeaseWrite { holder: String::new(), transitions: 0, over: None });
    }

    pub(crate) fn put_node(&mut self, mut node: Node) {
        self.revision += 1;
        node.revision = self.revision.to_string();
        let node = Rc::new(node);
        self.nodes.insert(node.name.clone(), Rc::clone(&node));
        self.log.push((self.revision, Told::Node(node)));
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.revision += 1;
            self.log.push((self.revision, Told::NodeGone(node)));
        }
    }

    /// Somebody deletes the Lease.
    pub(crate) fn delete_lease(&mut self) {
        self.revision += 1;
        self.lease = None;
    }

    /// The store is copied.
    pub(crate) fn copy(&mut self) {
        let Self { revision, pods, nodes, lease, .. } = self;
        let (pods, nodes, lease) = (pods.clone(), nodes.clone(), lease.clone());
        self.copy = Some(Copied { revision: *revision, pods, nodes, lease });
        self.renewals = 0;
        self.revision += WRITES_OF_OTHERS;
    }

    /// Whether there is a copy whose Lease is the one that is held now, and that was renewed since.
    pub(crate) fn is_led_as_copied(&self) -> bool {
        let held =
            |lease: &Option<Record>| lease.as_ref().map(|it| (it.holder.clone(), it.uid.clone()));
        let is_same = |copy: &Copied| held(&copy.lease) == held(&self.lease);
        self.renewals >= SEEN_AFTER && self.copy.as_ref().is_some_and(is_same)
    }

    /// The store is replaced by the copy. Watches know nothing of that.
    pub(crate) fn go_back(&mut self) {
        let Some(Copied { revision, pods, nodes, lease }) = self.copy.take() else { return };
        (self.pods, self.nodes, self.lease) = (pods, nodes, lease);
        self.log.retain(|(at, _)| *at <= revision);
        (self.revision, self.compacted) = (revision, self.compacted.min(revision));
    }

    /// A pod is made, unless its name is taken. Its uid is new.
    pub(crate) fn create(&mut self, mut pod: Pod) -> bool {
        if self.pods.contains_key(&pod.name) {
            return false;
        }
        pod.uid = self.new_uid();
        let name = pod.name.clone();
        self.names.insert(name.clone());
        self.pods.insert(name.clone(), Rc::new(pod));
        self.change(&name, |_| {});
        true
    }

    /// A uid that nothing else has or had.
    pub(crate) fn new_uid(&mut self) -> String {
        self.uids += 1;
        format!("u{}", self.uids)
    }

    /// What changed goes to the watches, with the revision of the change.
    pub(crate) fn note(&mut self, told: impl FnOnce(u64) -> Told) {
        self.revision += 1;
        self.log.push((self.revision, told(self.revision)));
    }

    /// Whether a pod has or had this name.
    pub(crate) fn has_had(&self, name: &VmName) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn change(&mut self, name: &VmName, change: impl FnOnce(&mut Pod)) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        self.revision += 1;
        let mut next = Pod::clone(pod);
        change(&mut next);
        count(&mut next);
        next.revision = self.revision.to_string();
        self.touched.extend(next.node.clone());
        *pod = Rc::new(next);
        self.log.push((self.revision, Told::Pod(Rc::clone(pod))));
    }

    pub(crate) fn remove(&mut self, name: &VmName) {
        if let Some(pod) = self.pods.remove(name) {
            self.revision += 1;
            self.touched.extend(pod.node.clone());
            self.log.push((self.revision, Told::PodGone(pod)));
        }
    }

    /// The name of the pod with this uid.
    pub(crate) fn name_of(&self, uid: &str) -> Option<VmName> {
        self.pods.values().find(|pod| pod.uid == uid).map(|pod| pod.name.clone())
    }

    pub(crate) fn pod(&self, name: &VmName, uid: &str) -> Option<&Rc<Pod>> {
        self.pods.get(name).filter(|pod| pod.uid == uid)
    }

    /// Pods that take room of a node.
    pub(crate) fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Rc<Pod>> {
        let here = move |pod: &&Rc<Pod>| pod.counts() && pod.node.as_deref() == Some(node);
        self.pods.values().filter(here)
    }

    /// What pods request of a node.
    pub(crate) fn requested(&self, node: &str) -> Resources {
        self.on(node).fold(Resources::ZERO, |sum, pod| sum.saturating_add(pod.requests))
    }

    /// What a watch at `after` tells up to `upto`.
    pub(crate) fn told(&self, kind: Kind, after: u64, upto: u64) -> Vec<(u64, Told)> {
        let from = self.log.partition_point(|(revision, _)| *revision <= after);
        let told = self.log[from..].iter().take_while(|(revision, _)| *revision <= upto);
        told.filter(|(_, told)| told.kind() == kind).cloned().collect()
    }

    pub(crate) fn has_news(&self, kind: Kind, after: u64) -> bool {
        let from = self.log.partition_point(|(revision, _)| *revision <= after);
        self.log[from..].iter().any(|(_, told)| told.kind() == kind)
    }

    /// No watch can go on from before this moment.
    pub(crate) const fn compact(&mut self) {
        self.compacted = self.revision;
    }

    pub(crate) fn take_touched(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.touched)
    }

    /// Carries a request out.
    pub(crate) fn serve(&mut self, call: &Call) -> Answer {
        match call {
            Call::LeaseRead => Answer::Lease(self.lease.clone()),
            Call::LeaseWrite(write) => self.write_lease(write.clone()),
            Call::Read(name) => Answer::Pod(self.pods.get(name).cloned()),
            Call::Bind { pod, uid, revision, node, ceiling } => {
                self.bind((pod, uid, revision), node, *ceiling)
            }
            Call::Annotate { pod, uid } => match self.pods.get(pod) {
                None => Answer::Status(404),
                Some(found) if found.uid != *uid => Answer::Status(409),
                Some(_) => {
                    self.change(pod, |_| {});
                    Answer::Pod(self.pods.get(pod).cloned())
                }
            },
            Call::Replace { on: CeilingOn::Pod(pod, uid), found, next } => {
                self.replace(pod, uid, found, *next)
            }
            Call::Replace { on: CeilingOn::Object(name, uid), found, next } => {
                self.record_on(name, uid, found, *next)
            }
            Call::ReadObject(name) => {
                Answer::Object(self.vms.get(name).map(|stored| Rc::clone(&stored.shown)))
            }
            Call::Label { name, uid, label } => self.label(name, uid, label),
            Call::Patch { looked, patch } => self.patch(&looked.name, patch),
            Call::List(Kind::Objects) => {
                let all = self.vms.values().map(|stored| Rc::clone(&stored.shown));
                Answer::Objects(all.collect(), self.revision)
            }
            Call::List(Kind::Migrations) => Answer::Migrations(self.migrations(), self.revision),
            Call::Begin(goes) => self.begin_migration(goes),
            Call::ReadMigration(name) => Answer::Migration(self.migrations.get(name).cloned()),
            Call::EndMigration { name, uid } => self.end_migration(name, uid),
            Call::Headroom(change) => self.write_headroom(change),
            Call::Resize(resize) => self.resize(resize),
            Call::List(Kind::Pods) => {
                Answer::Pods(self.pods.values().cloned().collect(), self.revision)
            }
            Call::List(Kind::Nodes) => {
                Answer::Nodes(self.nodes.values().cloned().collect(), self.revision)
            }
            Call::Watch { from } if *from < self.compacted => Answer::Status(410),
            Call::Watch { .. } => Answer::Done,
        }
    }

    fn bind(
        &mut self,
        (name, uid, revision): (&VmName, &str, &str),
        node: &str,
        ceiling: Option<Ceiling>,
    ) -> Answer {
        let Some(pod) = self.pods.get(name) else { return Answer::Status(404) };
        let is_same = pod.uid == uid && pod.revision == revision;
        if !is_same || pod.node.is_some() || pod.is_terminating {
            return Answer::Status(409);
        }
        self.change(name, |pod| {
            pod.node = Some(node.to_owned());
            if let (Some(vm), Some(ceiling)) = (&mut pod.vm, ceiling) {
                vm.ceiling = Some(ceiling);
            }
        });
        Answer::Done
    }

    fn replace(&mut self, name: &VmName, uid: &str, found: &Found, next: Ceiling) -> Answer {
        let Some(pod) = self.pods.get(name) else { return Answer::Status(404) };
        let is_met = match found {
            Found::Ceiling(ceiling) => pod.vm.as_ref().and_then(|vm| vm.ceiling) == Some(*ceiling),
            Found::Absent(revision) => pod.revision == *revision,
        };
        if pod.uid != uid || !is_met {
            return Answer::Status(422);
        }
        self.change(name, |pod| {
            if let Some(vm) = &mut pod.vm {
                vm.ceiling = Some(next);
            }
        });
        Answer::Done
    }

    fn write_headroom(&mut self, change: &Change) -> Answer {
        let name = &change.pod;
        let is_same = |uid: &str, revision: &str| {
            self.pods.get(name).is_some_and(|pod| pod.uid == uid && pod.revision == revision)
        };
        match &change.write {
            Write::Create { size } => {
                if self.create(headroom(name, &change.node, *size)) {
                    return Answer::Done;
                }
            }
            Write::Resize { uid, revision, size, .. } if is_same(uid, revision) => {
                self.change(name, |pod| resize(pod, *size, Limits::default()));
                return Answer::Done;
            }
            Write::Delete { uid, revision, .. } if is_same(uid, revision) => {
                self.change(name, |pod| pod.is_terminating = true);
                return Answer::Done;
            }
            Write::Resize { .. } | Write::Delete { .. } => {}
        }
        Answer::Status(409)
    }

    fn resize(&mut self, write: &Resize) -> Answer {
        let Resize { vm, uid, revision, to, limits, .. } = write;
        match self.pods.get(vm) {
            None => Answer::Status(404),
            Some(pod) if pod.uid != *uid || pod.revision != *revision => Answer::Status(409),
            Some(_) => {
                self.change(vm, |pod| resize(pod, *to, *limits));
                Answer::Done
            }
        }
    }

    fn write_lease(&mut self, write: LeaseWrite) -> Answer {
        let LeaseWrite { holder, transitions, over } = write;
        let revision = |record: &Record| record.revision.clone();
        if self.lease.as_ref().map(revision) != over.as_ref().map(revision) {
            return Answer::Status(409);
        }
        self.revision += 1;
        let revision = self.revision.to_string();
        let uid = over.map_or_else(|| format!("lease {revision}"), |over| over.uid);
        // Wall clocks stand still: what is written as time says nothing.
        let record = Record { holder, transitions, renewed: String::new(), uid, revision };
        self.lease = Some(record.clone());
        self.renewals = self.renewals.saturating_add(1);
        Answer::LeaseWritten(record)
    }
}
