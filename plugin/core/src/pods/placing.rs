//! Which nodes have room for a pod, and the placement of a pod on one of them.
//!
//! [`Pods::fits`] and [`Pods::score`] are advice: they read what the nodes publish and take no lock.
//! [`Pods::place`] is the commit point: the books check and reserve in one step. A binding to the node
//! follows, which carries the pod's uid and [`Placement::revision`], and then [`Pods::settle`].
//!
//! Uncertainty is a state. A binding whose answer is lost may take effect at any time while the pod has the
//! revision that the binding carries: only a pod that was read with another revision and no node, on
//! another node, or gone, ends the placement. A refusal is no proof while an earlier binding may have taken
//! effect, since the API server refuses the second for that.

use crate::cluster::Node;
use crate::pods::Pods;
use crate::pods::gone::How;
use crate::pods::known::{Known, Placed, Told};
use crate::pods::placement::{Outcome, Placement, Settled};
use crate::pods::refused::Refused;
use crate::pods::share::Share;
use crate::pods::why_not::{Sifted, Unfit, WhyNot};
use crate::summary::Summary;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Axis, Resources, VmName};

/// The best score.
const BEST: u8 = 10;

/// The node that a pod is placed on or bound to, if there is one.
#[derive(Clone, Copy)]
struct Place<'a> {
    node: Option<&'a str>,
    /// The books have the pod, and so its room there.
    is_known: bool,
}

// === impl Place ===

impl<'a> Place<'a> {
    /// Whether this node has room for the pod already.
    fn is_at(self, node: &str) -> Result<bool, Unfit<'a>> {
        match self.node {
            Some(placed) if placed == node => Ok(self.is_known),
            Some(placed) => Err(Unfit::Elsewhere(placed)),
            None => Ok(false),
        }
    }
}

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// Whether a node has room for a pod, or has the pod already, by what the node publishes.
    ///
    /// # Errors
    /// Why not.
    pub fn fits(&self, pod: &Pod, node: &str) -> Result<(), WhyNot> {
        let needs = (Share::of(pod), self.asked(pod));
        self.fits_as(self.place_of(pod), &needs, node).map_err(|unfit| unfit.on(node))
    }

    /// Which of these nodes have room for a pod, or have it already, and why the others have not.
    pub fn fits_each<'n>(&self, pod: &Pod, nodes: &'n [String]) -> Sifted<'n> {
        let mut fit = Vec::with_capacity(nodes.len());
        let mut others: Vec<(Unfit<'_>, Vec<&'n str>)> = Vec::new();
        // What is the same for all nodes is looked up once.
        let (place, needs) = (self.place_of(pod), (Share::of(pod), self.asked(pod)));
        for node in nodes {
            match self.fits_as(place, &needs, node) {
                Ok(()) => fit.push(node.as_str()),
                // There are as many reasons as axes and sums to compare, whatever the number of nodes.
                Err(unfit) => match others.iter_mut().find(|(other, _)| unfit.is_like(*other)) {
                    Some((_, nodes)) => nodes.push(node),
                    None => others.push((unfit, vec![node])),
                },
            }
        }
        let others = others.into_iter().map(|(unfit, nodes)| (unfit.reason(), nodes));
        Sifted { fit, others: others.collect() }
    }

    fn fits_as<'a>(
        &self,
        place: Result<Place<'a>, Unfit<'a>>,
        (share, asked): &(Share, Resources),
        node: &str,
    ) -> Result<(), Unfit<'a>> {
        let of_node = self.nodes.get(node).ok_or(Unfit::UnknownNode)?;
        let summary = of_node.there().ok_or(Unfit::UnknownNode)?.held.summary();
        if place?.is_at(node)? {
            return Ok(());
        }
        of_node.short(*share, *asked, summary).map_or(Ok(()), |short| Err(Unfit::NoRoom(short)))
    }

    /// How good a node is for a pod, from 0 to 10: tenths of the node's room for VMs that would stay free,
    /// on the axis that has less. VMs grow into what is free.
    pub fn score(&self, pod: &Pod, node: &str) -> u8 {
        self.score_as(Share::of(pod).asked(), node)
    }

    /// The same of each of these nodes.
    pub fn scores(&self, pod: &Pod, nodes: &[String]) -> Vec<u8> {
        let asked = Share::of(pod).asked();
        nodes.iter().map(|node| self.score_as(asked, node)).collect()
    }

    fn score_as(&self, asked: Resources, node: &str) -> u8 {
        let Some(summary) = self.open(node) else { return 0 };
        let tenths = |axis: Axis| {
            let left = axis.of(summary.free()).saturating_sub(axis.of(asked));
            tenths(left, axis.of(summary.room))
        };
        tenths(Axis::Cpu).min(tenths(Axis::Memory))
    }

    /// Whether a node has room for a pod once the pods with these uids are gone from it.
    ///
    /// # Errors
    /// Why not.
    pub fn fits_without(
        &self,
        pod: &Pod,
        node: &str,
        victims: &BTreeSet<String>,
    ) -> Result<(), WhyNot> {
        let unknown = || WhyNot::UnknownNode(node.to_owned());
        let held = self.nodes.get(node).ok_or_else(unknown)?;
        let pods = held.pods.iter().filter_map(|name| Some((name, self.pods.get(name)?)));
        let victims = pods.filter(|(_, known)| victims.contains(&known.uid));
        let victims = victims.map(|(name, known)| (name, known.share()));
        let share = Share::of(pod);
        let short = held.short_without(victims, share, self.asked(pod)).ok_or_else(unknown)?;
        if self.has_place(pod, node)? {
            return Ok(());
        }
        short.map_or(Ok(()), |short| Err(Unfit::NoRoom(short).on(node)))
    }

    /// Reserves what a pod may have from its first moment, its requests, on this node, or refuses. The pod
    /// was read from the API server. A VM pod that is refused for want of room is
    /// [remembered](Pods::waiting_for).
    ///
    /// # Errors
    /// Why the pod is refused; nothing is reserved then.
    pub fn place(&mut self, pod: &Pod, node: &str) -> Result<Placement, WhyNot> {
        if self.has_place(pod, node)? {
            return Ok(self.place_again(pod, node));
        }
        let pod = &self.judged(pod.clone());
        self.replaced_by(pod);
        let known = self.pods.get(&pod.name).filter(|known| known.uid == pod.uid);
        let mut next = match known {
            Some(known) if known.is_late(pod) => known.clone(),
            Some(known) => known.clone().told(pod.clone(), Told::Read),
            None => Known::of(pod.clone(), Told::Read),
        };
        let known = self.pods.name(&pod.name).cloned();
        let name = known.unwrap_or_else(|| Arc::new(pod.name.clone()));
        self.note_namesake(&name, None, Some(&mut next));
        self.objects.show_to(&pod.name, &mut next);
        let asked = next.share().asked().max(self.comes_with(&pod.name, pod.vm.as_deref()));
        let reserved = asked.max(next.placed.lost(node));
        next.placed = Placed::UnderWay {
            node: node.into(),
            reserved,
            sent: vec![pod.revision.clone()],
            attempts: 1,
        };
        let held = self.nodes.get_mut(node);
        let done = held.and_then(|held| held.reserve(&name, next.share(), asked));
        match done.ok_or_else(|| WhyNot::UnknownNode(node.to_owned()))? {
            Err(short) => {
                self.refused(pod);
                Err(WhyNot::NoRoom { node: node.to_owned(), short })
            }
            Ok(()) => {
                self.waiting.remove(&pod.name);
                self.open.insert(pod.name.clone());
                let last = self.pods.remove(&pod.name);
                self.objects.note(&name, last.as_ref(), Some(&next));
                self.newcomers.push(Arc::clone(&name));
                self.pods.insert(name, next);
                self.mark_pod(&pod.name);
                Ok(placement(pod, node, reserved, false))
            }
        }
    }

    /// What became of the binding of a pod that was placed.
    pub fn settle(&mut self, name: &VmName, uid: &str, outcome: Outcome) -> Settled {
        let known = self.pods.get_mut(name).filter(|known| known.uid == uid);
        let Some(known) = known.filter(|known| known.placed.node().is_some()) else {
            return Settled::Unknown;
        };
        match outcome {
            Outcome::Bound => {
                known.placed.bind();
                Settled::Bound
            }
            Outcome::Refused => match known.placed {
                Placed::UnderWay { attempts: 1, .. } => self.release(name, None),
                Placed::UnderWay { .. } | Placed::Bound { .. } => Settled::Open,
                Placed::No | Placed::Shown { .. } | Placed::Lost { .. } => Settled::Unknown,
            },
            Outcome::Read(Some(pod)) if pod.uid == uid => self.settle_read(*pod),
            Outcome::Read(other) => {
                self.gone.add(uid, How::Deleted);
                let mut freed = self.put(name, None);
                if let Some(other) = other {
                    freed.and(self.take(*other, Told::Read));
                }
                Settled::Released(freed)
            }
        }
    }

    /// The placements that the watch has not shown yet, also those that the API server has bound: name, uid
    /// and node. The shell reads each of these pods now and then, and after each list, and settles it.
    pub fn placements(&self) -> impl Iterator<Item = (&VmName, &str, &str)> {
        self.open.iter().filter_map(|name| {
            let known = self.pods.get(name)?;
            Some((name, known.uid.as_str(), known.placed.node()?))
        })
    }

    /// A VM pod was refused by every node that was asked, for want of room.
    pub fn refused(&mut self, pod: &Pod) {
        if pod.vm.is_some() {
            let (name, uid) = (pod.name.clone(), pod.uid.clone());
            let asked = self.asked(pod);
            self.waiting.add(Refused { name, uid, asked });
        }
    }

    /// A pod that was refused turned out to be gone.
    pub fn waits_no_longer(&mut self, name: &VmName, uid: &str) {
        self.waiting.gone(name, uid);
    }

    /// The VM pods that were refused for want of room and fit on this node by what it publishes, one after
    /// the other. The pod that has waited longest comes first.
    pub fn waiting_for(&self, node: &str) -> Vec<&Refused> {
        let open = self.open(node);
        open.map(|open| self.waiting.that_fit(open.free())).unwrap_or_default()
    }

    /// What pods that are to be placed find on a node, by what it publishes.
    pub(super) fn open(&self, node: &str) -> Option<Summary> {
        let of_node = self.nodes.get(node)?;
        Some(of_node.open(of_node.there()?.held.summary()))
    }

    /// What a pod takes of a node from its first moment there: its requests, and what moves there with it.
    fn asked(&self, pod: &Pod) -> Resources {
        Share::of(pod).asked().max(self.comes_with(&pod.name, pod.vm.as_deref()))
    }

    /// Whether this node has room for the pod by an earlier placement or binding.
    fn has_place(&self, pod: &Pod, node: &str) -> Result<bool, WhyNot> {
        let has_place = self.place_of(pod).and_then(|place| place.is_at(node));
        has_place.map_err(|unfit| unfit.on(node))
    }

    /// Where a pod has room by an earlier placement or binding.
    fn place_of<'a>(&'a self, pod: &'a Pod) -> Result<Place<'a>, Unfit<'a>> {
        let known = self.pods.get(&pod.name);
        let same = known.filter(|known| known.uid == pod.uid);
        let has_ended = pod.phase.is_ended() || same.is_some_and(|known| known.has_ended);
        // A pod that another was seen in place of may be the one that is there.
        if has_ended || (same.is_none() && self.gone.holds(&pod.uid, false)) {
            return Err(Unfit::Gone(&pod.name));
        }
        let node = same.and_then(Known::place).or(pod.node.as_deref());
        Ok(Place { node, is_known: same.is_some() })
    }

    fn place_again(&mut self, pod: &Pod, node: &str) -> Placement {
        let mut reserved = self.asked(pod);
        if let Some(known) = self.pods.get_mut(&pod.name) {
            known.placed.send(&pod.revision);
            reserved = known.placed.reserved().unwrap_or(reserved);
        }
        placement(pod, node, reserved, true)
    }

    /// A pod that was read shows that an older one of its name is gone.
    fn replaced_by(&mut self, pod: &Pod) {
        if let Some(older) = self.pods.get(&pod.name).filter(|known| known.uid != pod.uid) {
            self.gone.add(&older.uid, How::Replaced);
            self.put(&pod.name, None);
        }
    }

    fn settle_read(&mut self, pod: Pod) -> Settled {
        let name = pod.name.clone();
        let before = self.pods.get(&name).map(|known| known.placed.clone());
        let may_follow = match &before {
            Some(Placed::UnderWay { sent, .. }) => sent.contains(&pod.revision),
            Some(
                Placed::No | Placed::Bound { .. } | Placed::Shown { .. } | Placed::Lost { .. },
            )
            | None => false,
        };
        let is_bound = pod.node.is_some();
        let freed = self.take(pod, Told::Read);
        let node = before.as_ref().and_then(Placed::node);
        match self.pods.get(&name).map(|known| &known.placed) {
            Some(Placed::UnderWay { .. }) if may_follow => Settled::Open,
            Some(Placed::UnderWay { .. } | Placed::Bound { .. }) if !is_bound => {
                let place = self.reserved_at(&name);
                self.release(&name, place)
            }
            Some(placed) if placed.node() == node => Settled::Bound,
            Some(_) | None => Settled::Released(freed),
        }
    }

    /// The placement of this pod ends, and what was reserved is free. It may have been at this place all the same.
    fn release(&mut self, name: &VmName, place: Option<(Arc<str>, Resources)>) -> Settled {
        let mut next = self.pods.get(name).cloned();
        if let Some(known) = &mut next {
            known.placed = Placed::No;
        }
        Settled::Released(self.put(name, next.map(|known| known.had(|| place))))
    }

    /// Where a pod has its place, and what is reserved for it there.
    pub(super) fn reserved_at(&self, name: &VmName) -> Option<(Arc<str>, Resources)> {
        let node = self.pods.get(name)?.place()?.into();
        Some((node, self.books_of(name)?.with_books(|books| books.reserved_for(name))?))
    }
}

fn placement(pod: &Pod, node: &str, reserved: Resources, is_repeat: bool) -> Placement {
    let (name, uid, revision) = (pod.name.clone(), pod.uid.clone(), pod.revision.clone());
    Placement { pod: name, uid, revision, node: node.to_owned(), reserved, is_repeat }
}

/// How many tenths of a node's room this is.
fn tenths(left: u64, room: u64) -> u8 {
    let (best, room) = (u64::from(BEST), room.max(1));
    let tenths = match left.checked_mul(best) {
        Some(left) => left / room,
        // The product of so much is no number: a tenth of the room counts as one.
        None => left / (room / best).max(1),
    };
    u8::try_from(tenths).unwrap_or(BEST)
}
