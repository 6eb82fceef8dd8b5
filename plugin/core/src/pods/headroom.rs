//! How large the headroom pods are to be, and the order in which that becomes true.
//!
//! [`Pods::headroom_plan`] says what to write, from what is known, and says the same when it is asked again.
//! Before a write is sent, [`Pods::headroom_sent`] lets the room fall to what the pod asks for after it: a
//! pod that is to shrink or to go holds less from here on, whether or not the write takes effect. Room rises
//! with what the kubelet has allocated, as the watch shows it.
//!
//! A write is for one revision of the pod, and takes effect on that or not at all. While its outcome is not
//! known, the same is sent again; once the pod is seen with another revision, the pod says what became of
//! it. One resize is under way at a time, but for one that the kubelet defers or cannot carry out: the pod
//! asks again for what it has, so that the scheduler counts no room that nobody gets.
//!
//! A headroom pod that an earlier plugin made holds nothing until its revision is another
//! ([`Pods::inherit_headroom`]): a resize of that plugin may still take effect.

use crate::cluster::Node;
use crate::pods::Pods;
use crate::pods::change::{Change, Write, Written};
use crate::pods::held::HeldNode;
use crate::pods::known::{Known, Sent, SentState};
use crate::pods::pools::{HeadroomTerms, Mode};
use std::collections::BTreeSet;
use windlass_protocol::{Axis, Bytes, MilliCpu, Moment, Resources, VmName};

/// The least that a headroom pod asks for on each axis: a pod that asks for none of one can never ask for it.
const LEAST: Resources = Resources { cpu: MilliCpu::from_milli(1), mem: Bytes::from_mib(1) };

/// A headroom pod is no more resized for less than this.
const STEP: Resources = Resources { cpu: MilliCpu::from_milli(100), mem: Bytes::from_mib(64) };

/// What VMs of a node have and want beyond their requests.
struct Needs {
    grown: Resources,
    /// What they asked for and did not get.
    missing: Resources,
    /// All that they may grow into.
    growth: Resources,
}

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// What is to be written of headroom pods, by node.
    pub fn headroom_plan(&self, now: Moment) -> Vec<Change> {
        let mut plan = Vec::new();
        let mut known: BTreeSet<&VmName> = self.headroom.iter().collect();
        for (node, held) in self.nodes.in_order().into_iter() {
            let Some(Mode::Headroom(terms)) = held.there().map(|seen| seen.mode) else { continue };
            let pod = self.pools.headroom_of(node);
            known.remove(&pod);
            if let Some(write) = self.headroom_write(held, terms, &pod, now) {
                plan.push(Change { node: node.to_string(), pod, write });
            }
        }
        // Nodes that left their pool, or the cluster.
        for pod in known {
            if let Some(known) = self.pods.get(pod).filter(|known| !known.is_terminating()) {
                let node = known.place().unwrap_or_default().to_owned();
                let write = again(known).unwrap_or_else(|| Some(delete(known)));
                plan.extend(write.map(|write| Change { node, pod: pod.clone(), write }));
            }
        }
        plan
    }

    /// This change is sent now: the pod holds no more than it asks for after it. `false`: it is not to be sent, since
    /// VMs have grown into what it would give up, or the pod is another by now.
    pub fn headroom_sent(&mut self, change: &Change) -> bool {
        let (uid, revision, to) = match &change.write {
            Write::Create { .. } => return true,
            Write::Resize { uid, revision, size, .. } => (uid, revision, *size),
            Write::Delete { uid, revision, .. } => (uid, revision, Resources::ZERO),
        };
        let known = self.pods.get(&change.pod);
        let known = known.filter(|known| known.uid == *uid && known.revision == *revision);
        let Some(known) = known else { return false };
        let attempts = match known.sent.as_deref() {
            None => 0,
            Some(Sent { to: before, state: SentState::Open(attempts), .. }) if *before == to => {
                *attempts
            }
            Some(_) => return false,
        };
        let mut next = known.clone();
        let state = SentState::Open(attempts.saturating_add(1));
        next.sent = Some(Box::new(Sent { revision: revision.clone(), to, state }));
        let (before, after) = (known.share(), next.share());
        let held = known.place().and_then(|node| self.nodes.get_mut(node));
        let name = self.pods.name(&change.pod);
        let gave_up = held.zip(name).is_none_or(|(held, name)| held.give_up(name, before, after));
        if let Some(known) = self.pods.get_mut(&change.pod).filter(|_| gave_up) {
            *known = next;
        }
        gave_up
    }

    /// What became of a change that was sent.
    pub fn headroom_written(&mut self, change: &Change, written: Written) {
        let revision = match &change.write {
            Write::Create { .. } => return,
            Write::Resize { revision, .. } | Write::Delete { revision, .. } => revision,
        };
        let mut next = self.pods.get(&change.pod).cloned();
        let Some(sent) = next.as_mut().and_then(|known| known.sent.as_mut()) else { return };
        let SentState::Open(attempts) = sent.state else { return };
        if sent.revision != *revision {
            return;
        }
        match written {
            Written::Answered => sent.state = SentState::Answered,
            // An earlier one that was not answered may yet take effect.
            Written::Refused if attempts > 1 => return,
            Written::Refused => {
                if let Some(known) = &mut next {
                    known.sent = None;
                }
            }
            Written::Unknown => return,
        }
        self.put(&change.pod, next);
    }

    /// Whatever an earlier plugin may have sent can still take effect on each headroom pod as it is now; which those are.
    pub fn inherit_headroom(&mut self) -> Vec<(VmName, String)> {
        let mut inherited = Vec::new();
        for name in self.headroom.clone() {
            let mut next = self.pods.get(&name).cloned();
            if let Some(known) = next.as_mut().filter(|known| !known.has_ended) {
                let (to, state) = (Resources::ZERO, SentState::Inherited);
                let revision = known.revision.clone();
                known.sent = Some(Box::new(Sent { revision, to, state }));
                inherited.push((name.clone(), known.uid.clone()));
                self.put(&name, next);
            }
        }
        inherited
    }

    /// Nothing that an earlier plugin may have sent for this pod can take effect any more, though the pod was not touched.
    pub fn inherited_is_too_old(&mut self, name: &VmName, uid: &str) {
        let marked = self.pods.get(name).filter(|known| known.uid == uid && known.is_inherited());
        if let Some(mut next) = marked.cloned() {
            next.sent = None;
            self.put(name, Some(next));
        }
    }

    fn headroom_write(
        &self,
        held: &HeldNode<N>,
        terms: HeadroomTerms,
        pod: &VmName,
        now: Moment,
    ) -> Option<Write> {
        let seen = held.there()?;
        let free = held.taken.unrequested(seen.allocatable);
        let most = terms.most(seen.allocatable);
        let needs = || {
            let (reserved, missing) =
                seen.held.with_books(|books| (books.reserved(), books.missing(now)));
            Needs { grown: held.taken.grown(reserved), missing, growth: held.taken.growth() }
        };
        let Some(known) = self.pods.get(pod) else {
            let size = needs().size(Resources::ZERO, free, terms, most)?;
            return free.covers(size).then_some(Write::Create { size });
        };
        if !known.is_headroom || known.is_terminating() {
            return None;
        }
        if let Some(write) = again(known) {
            return write;
        }
        let allocation = known.allocation.as_deref()?;
        if known.has_ended {
            return Some(delete(known));
        }
        let (uid, revision) = (known.uid.clone(), known.revision.clone());
        if let (Some(size), Some(_)) = (allocation.allocated, allocation.pending)
            && size != allocation.spec
        {
            return Some(Write::Resize { uid, revision, size, gives_up: true });
        }
        match needs().size(allocation.spec, free, terms, most) {
            None => Some(delete(known)),
            Some(size) => (allocation.is_settled() && size != allocation.spec)
                .then_some(Write::Resize { uid, revision, size, gives_up: false }),
        }
    }
}

// === impl Needs ===

impl Needs {
    /// What a headroom pod of this size is to request, of a node where this much more is free; `None`: there is no need
    /// of it.
    fn size(
        &self,
        has: Resources,
        free: Resources,
        terms: HeadroomTerms,
        most: Resources,
    ) -> Option<Resources> {
        let spare = [terms.cpu.map(MilliCpu::milli), terms.mem.map(Bytes::bytes)];
        let [cpu, mem] = [Axis::Cpu, Axis::Memory].map(|axis| {
            self.on(axis, axis.of(has), axis.of(free), spare[axis.index()], axis.of(most))
        });
        let size = Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) };
        // A pod that is there is larger sooner than one that is still to come.
        let is_of_use = self.growth.max(self.grown) != Resources::ZERO;
        is_of_use.then(|| size.max(LEAST))
    }

    /// The same on one axis. What is kept ready moves between half of what it is to be and one and a half of that, so
    /// that a VM that grows and shrinks does not have the pod resized each time.
    fn on(&self, axis: Axis, has: u64, free: u64, spare: Option<u64>, most: u64) -> u64 {
        let (grown, missing) = (axis.of(self.grown), axis.of(self.missing));
        let growth = axis.of(self.growth);
        let wanted = grown.saturating_add(missing).saturating_add(spare.unwrap_or(growth));
        let wanted = wanted.min(growth).min(most).max(grown);
        let wanted = wanted.min(has.saturating_add(free)).max(grown.min(has));
        let step = axis.of(STEP).max(spare.unwrap_or(0) / 2);
        let is_unmet = missing > 0 && wanted > has;
        // Beyond all that VMs may grow into nothing is of use, and what they have is to be covered.
        let is_useless = has > growth.max(grown);
        let is_near = wanted.abs_diff(has) < step && has >= grown;
        if is_near && !is_unmet && !is_useless { has } else { wanted }
    }
}

/// What is to be sent again, if anything was sent for this revision; then nothing else is.
fn again(known: &Known) -> Option<Option<Write>> {
    let sent = known.sent.as_ref()?;
    let (uid, revision) = (known.uid.clone(), known.revision.clone());
    Some(match sent.state {
        SentState::Answered | SentState::Inherited => None,
        SentState::Open(_) if sent.to == Resources::ZERO => Some(delete(known)),
        SentState::Open(_) => Some(Write::Resize { uid, revision, size: sent.to, gives_up: false }),
    })
}

fn delete(known: &Known) -> Write {
    let (uid, revision) = (known.uid.clone(), known.revision.clone());
    Write::Delete { uid, revision, has_ended: known.has_ended }
}
