//! The books of a Kubernetes cluster's nodes, as the API server's objects tell them.
//!
//! Law 2, books within the node, across growth and placement: what other pods request leaves the room of a
//! node's VMs beforehand, a placement takes its share of the room in one step with the check that it fits,
//! and a permit does so in the same books. Whatever else a pod takes of a node is a fact: it counts, and
//! while the node is over-full nothing is granted or placed on that axis.
//!
//! A pod counts from its binding until it has ended or is gone, also while it is being deleted. Its name
//! has one pod at a time: another uid is another pod, which inherits nothing. Each VM pod has an entry in
//! its node's [`Books`](crate::Books) under the pod's name: it counts with its recorded ceiling, or with
//! the maximum of its bounds, until its agent speaks, and never with less than it requests.
//!
//! A *placement* begins with [`Pods::place`] and never expires: until the pod shows its node, or was read
//! on no node, on another, or gone, its room is reserved. Words that come late or twice change nothing
//! (`known` says which those are); a full list replaces all that the watch said, but no placement.
//!
//! Law 9, rebuild equals live: nothing is stored. Lists of the nodes and pods, the recorded ceilings and
//! the agents' next requests make the same books. `tests/pods/laws.rs` looks for counterexamples of both.

pub mod audit;
mod change;
mod fitting;
mod following;
mod freed;
mod gone;
mod headroom;
mod held;
mod known;
mod leaving;
mod migration;
mod moving;
mod namesakes;
mod objects;
mod pacing;
mod placement;
mod placing;
mod pools;
mod record;
mod recording;
mod refused;
mod resizing;
mod rooms;
mod share;
mod status;
mod taken;
mod views;
mod why_not;

pub use change::{Change, Kind, Resize, Write, Written};
pub use freed::Freed;
pub use migration::{Migration, MigrationTerms, Move, Step};
pub use objects::CeilingOn;
pub use pacing::Pacing;
pub use placement::{Outcome, Placement, Settled};
pub use pools::{HeadroomTerms, Mode, Pool, Pools};
pub use refused::Refused;
pub use status::{NodePods, NotResized, Open};
pub use why_not::{Reason, Short, Sifted, WhyNot};

use crate::by_name::ByName;
use crate::cluster::Node;
use crate::hold::Hold;
use crate::summary::Summary;
use gone::{Gone, How};
use held::HeldNode;
use known::{Known, Told};
use migration::Migrations;
use namesakes::Namesakes;
use objects::Objects;
use refused::Waiting;
use share::Share;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Moment, VmName, node};

/// The nodes and pods of a cluster, and the books of the nodes.
#[derive(Clone, Debug)]
pub struct Pods<N> {
    pools: Pools,
    nodes: ByName<str, HeldNode<N>>,
    pods: ByName<VmName, Known>,
    /// The pods that a placement keeps room for.
    open: BTreeSet<VmName>,
    /// The headroom pods.
    headroom: BTreeSet<VmName>,
    gone: Gone,
    waiting: Waiting,
    migrations: Migrations,
    objects: Objects,
    namesakes: Namesakes,
    /// VMs that came to nodes since they were [greeted](Pods::greet) last.
    newcomers: Vec<Arc<VmName>>,
}

// === impl Pods ===

impl<N> Default for Pods<N> {
    fn default() -> Self {
        Self {
            pools: Pools::default(),
            nodes: ByName::default(),
            pods: ByName::default(),
            open: BTreeSet::new(),
            headroom: BTreeSet::new(),
            gone: Gone::default(),
            waiting: Waiting::default(),
            migrations: Migrations::default(),
            objects: Objects::default(),
            namesakes: Namesakes::default(),
            newcomers: Vec::new(),
        }
    }
}

impl<N: Node> Pods<N> {
    /// Of no node yet; these are the pools of those that come.
    pub fn of(pools: Pools) -> Self {
        let objects = Objects::followed(pools.follows_objects);
        Self { pools, objects, ..Self::default() }
    }

    /// The watch shows a node. `hold` makes what is held of it, with empty books, if it is not known.
    pub fn node_seen(&mut self, node: &node::Node, hold: impl FnOnce() -> N) -> Freed {
        let known = self.nodes.get(node.name.as_str()).and_then(HeldNode::there);
        if known.is_some_and(|seen| seen.revision == node.revision || seen.is_late(&node.revision))
        {
            return Freed::default();
        }
        self.take_node(node, hold)
    }

    /// The watch shows that a node is gone. Nothing is placed there and no agent of its VMs is answered, but its books
    /// stay as long as it has pods: they run on, and a node of this name may come again.
    pub fn node_gone(&mut self, name: &str) {
        if let Some(held) = self.nodes.get_mut(name) {
            held.leave();
            self.drop_unused(name);
        }
    }

    /// These are the nodes from here on.
    pub fn nodes_listed(
        &mut self,
        nodes: Vec<node::Node>,
        mut hold: impl FnMut(&node::Node) -> N,
    ) -> Freed {
        let mut freed = Freed::default();
        for node in &nodes {
            freed.and(self.take_node(node, || hold(node)));
        }
        let listed: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let known = self.nodes.in_order().into_iter().map(|(name, _)| name);
        let gone = known.filter(|name| !listed.contains(&***name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.node_gone(&name);
        }
        freed
    }

    /// The watch shows a pod.
    pub fn pod_seen(&mut self, pod: Pod) -> Freed {
        self.take(pod, Told::Watched)
    }

    /// A pod was read: older words of it may be under way in the watch.
    pub fn pod_read(&mut self, pod: Pod) -> Freed {
        self.take(pod, Told::Read)
    }

    /// The watch shows that a pod is gone.
    pub fn pod_gone(&mut self, name: &VmName, uid: &str) -> Freed {
        self.gone.add(uid, How::Deleted);
        self.waiting.gone(name, uid);
        match self.pods.get(name) {
            Some(known) if known.uid == uid => self.put(name, None),
            Some(_) | None => Freed::default(),
        }
    }

    /// These are the pods from here on, whatever the watch said before. A placement that no pod has shown
    /// yet goes on: the list may be older. Pods that came count before others go.
    pub fn pods_listed(&mut self, pods: Vec<Pod>) -> Freed {
        let mut freed = Freed::default();
        let mut listed: BTreeSet<Arc<VmName>> = BTreeSet::new();
        for pod in pods {
            let name = pod.name.clone();
            freed.and(self.list(pod));
            // Whatever is known of the pod, a list that has it leaves it there.
            listed.extend(self.pods.name(&name).cloned());
        }
        self.waiting.retain(|name| listed.contains(name));
        let known = self.pods.in_order().into_iter().filter(|(name, _)| !listed.contains(*name));
        let gone = known.filter(|(_, known)| known.placed.node().is_none());
        for name in gone.map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>() {
            if let Some(known) = self.pods.get(&name).filter(|known| known.told != Told::Read) {
                self.gone.add(&known.uid, How::Deleted);
            }
            freed.and(self.put(&name, None));
        }
        freed
    }

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

    fn take_node(&mut self, node: &node::Node, hold: impl FnOnce() -> N) -> Freed {
        let held = self.nodes.or_default(&node.name);
        let mode = self.pools.mode_of(&node.labels);
        let is_new = !held.has_entered(mode);
        let pods: Vec<Arc<VmName>> = held.pods.iter().filter(|_| is_new).cloned().collect();
        let shares = pods.iter().filter_map(|name| Some((name, self.pods.get(name)?.share())));
        let mut freed = Freed::default();
        let watermark = self.pools.watermark_of(&node.labels);
        freed.note(&node.name, held.see(node, (mode, watermark), hold, shares));
        pods.iter().for_each(|pod| self.mark_pod(pod));
        self.newcomers.extend(pods);
        freed
    }

    /// The watch or a read tells of a pod. What is known of a pod that was placed may be ahead of the
    /// watch: another pod of its name that the watch shows then is an older one.
    fn take(&mut self, pod: Pod, told: Told) -> Freed {
        let pod = self.judged(pod);
        let name = pod.name.clone();
        let next = match self.pods.get_mut(&name) {
            Some(known) if known.uid == pod.uid => {
                // The watch shows what was read: from here on the pod shows its place by itself.
                let confirms = known.revision == pod.revision
                    && told == Told::Watched
                    && known.told != Told::Watched;
                if !confirms && known.is_late(&pod) {
                    return Freed::default();
                }
                known.clone().told(pod, told)
            }
            known => {
                let is_placed = known.as_ref().is_some_and(|known| known.placed.node().is_some());
                let is_old = is_placed && told == Told::Watched;
                if is_old {
                    // The watch may tell of it once more when the pod that was placed is no placement any more.
                    self.gone.add(&pod.uid, How::Replaced);
                }
                if self.gone.holds(&pod.uid, known.is_some()) {
                    return Freed::default();
                }
                if let Some(known) = known {
                    self.gone.add(&known.uid, How::Replaced);
                }
                Known::of(pod, told)
            }
        };
        self.put(&name, Some(next))
    }

    /// A list has this pod.
    fn list(&mut self, pod: Pod) -> Freed {
        let pod = self.judged(pod);
        let name = pod.name.clone();
        let next = match self.pods.get(&name) {
            Some(known) if known.uid == pod.uid => {
                known.clone().listed(pod).had(|| self.reserved_at(&name))
            }
            // Which of both is older, only a read of the pod that was placed can say.
            Some(known) if known.placed.node().is_some() => return Freed::default(),
            known => {
                if let Some(known) = known {
                    let how = match known.told {
                        Told::Read => How::Replaced,
                        Told::Ahead | Told::Watched => How::Deleted,
                    };
                    self.gone.add(&known.uid, how);
                }
                Known::of(pod, Told::Watched)
            }
        };
        // The API server went back. An agent was answered by the name of its VM since then, whichever pod had it.
        let returns = self.gone.was_deleted(&next.uid);
        self.gone.remove(&next.uid);
        self.put_as(&name, Some(next), returns)
    }

    /// A pod is headroom where it is the plugin's own.
    fn judged(&self, pod: Pod) -> Pod {
        Pod { is_headroom: self.pools.is_headroom(&pod), ..pod }
    }

    /// Replaces what is known of the pod with this name. What it takes of its new node counts before what
    /// it took elsewhere comes free.
    fn put(&mut self, name: &VmName, next: Option<Known>) -> Freed {
        self.put_as(name, next, false)
    }

    /// The same; whether it counts with what the pod had, too, that it comes in place of.
    fn put_as(&mut self, name: &VmName, mut next: Option<Known>, inherits: bool) -> Freed {
        let shared = self.pods.name(name).map_or_else(|| Arc::new(name.clone()), Arc::clone);
        if next.as_ref().and_then(Known::place).is_none() {
            self.remember_ceiling(name);
        }
        let last = self.pods.remove(name);
        self.note_namesake(&shared, last.as_ref(), next.as_mut());
        if let Some(next) = &mut next {
            self.objects.show_to(name, next);
        }
        self.objects.note(&shared, last.as_ref(), next.as_ref());
        let is_going = |known: &Option<Known>| known.as_ref().is_some_and(Known::is_terminating);
        let goes = is_going(&next) && !is_going(&last);
        let object = |known: &Option<Known>| known.as_ref().and_then(Known::other_object).cloned();
        let leaves = object(&last).filter(|last| object(&next).as_ref() != Some(last));
        let node = |place: &str| self.nodes.name(place).map_or_else(|| place.into(), Arc::clone);
        let takes = |known: &Known| Some((node(known.place()?), known.share()));
        let (before, after) = (last.as_ref().and_then(takes), next.as_ref().and_then(takes));
        let is_same_pod = match (&last, &next) {
            (Some(last), Some(next)) => last.uid == next.uid,
            (None, _) | (_, None) => false,
        };
        // A pod may be refused before the watch shows it: its first word does not end its wait.
        let gone = last.as_ref().filter(|_| !is_same_pod);
        let done = next.as_ref().filter(|known| after.is_some() || known.has_ended);
        for known in gone.into_iter().chain(done) {
            self.waiting.gone(name, &known.uid);
        }
        match next.as_ref().and_then(|known| known.placed.node()) {
            Some(_) => drop(self.open.insert(name.clone())),
            None => drop(self.open.remove(name)),
        }
        match &next {
            Some(next) if next.is_headroom => drop(self.headroom.insert(name.clone())),
            Some(_) | None => drop(self.headroom.remove(name)),
        }
        if let Some(mut next) = next {
            after.iter().for_each(|(node, _)| next.share_node(node));
            self.pods.insert(Arc::clone(&shared), next);
        }
        let mut freed = Freed::default();
        if is_same_pod && before == after {
            if goes {
                self.mark_pod(name);
            }
            return freed;
        }
        let (from, share) = before.unzip();
        let (to, next_share) = after.unzip();
        if let Some(to) = &to {
            let share = share.filter(|_| from.as_ref() == Some(to));
            let held = self.nodes.or_default(to);
            freed.note(to, held.change(&shared, share, next_share, is_same_pod || inherits));
            if let Some(share) = next_share.filter(|_| inherits && !is_same_pod) {
                held.returned(&shared, share);
            }
        }
        if matches!(next_share, Some(Share::Vm { .. })) && (!is_same_pod || from != to) {
            self.newcomers.push(Arc::clone(&shared));
        }
        if let Some(from) = from.filter(|from| to.as_ref() != Some(from))
            && let Some(held) = self.nodes.get_mut(&from)
        {
            freed.note(&from, held.change(&shared, share, None, false));
            self.drop_unused(&from);
        }
        self.mark_pod(name);
        leaves.iter().for_each(|object| self.mark_pods_of(object));
        freed
    }

    /// What is known of a pod changes from `last` to `next`: whether a request for its VM may be one for another of its name.
    fn note_namesake(
        &mut self,
        name: &Arc<VmName>,
        last: Option<&Known>,
        next: Option<&mut Known>,
    ) {
        let there = last.filter(|last| last.is_vm() && last.place().is_some());
        let stays = |last: &Known| {
            let next = next.as_ref().filter(|next| next.uid == last.uid);
            next.is_some_and(|next| next.place() == last.place())
        };
        if there.is_some_and(|last| !stays(last)) {
            self.namesakes.left(name);
        }
        if let Some(next) = next {
            next.has_namesake = next.is_vm() && self.namesakes.have(name);
        }
    }

    /// Forgets a node that is not there and has no pods.
    fn drop_unused(&mut self, node: &str) {
        let is_unused = |held: &HeldNode<N>| held.there().is_none() && held.pods.is_empty();
        if self.nodes.get(node).is_some_and(is_unused) {
            self.nodes.remove(node);
        }
    }
}
