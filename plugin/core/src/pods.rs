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
mod reading;
mod record;
mod recording;
mod refused;
mod resizing;
mod rooms;
mod share;
mod status;
mod taken;
mod views;
mod watching;
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
use gone::Gone;
use held::HeldNode;
use known::Known;
use migration::Migrations;
use namesakes::Namesakes;
use objects::Objects;
use refused::Waiting;
use share::Share;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_protocol::VmName;
use windlass_protocol::pod::Pod;

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
