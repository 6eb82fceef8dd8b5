//! VMs' own pods, resized so that a VM may have what its kubelet has allocated: on nodes whose pool says so.
//!
//! [`Pods::resize_due`] says what to write of a VM's pod, from what is known, and says the same when it is asked again.
//! Before a write is sent, [`Pods::resize_sent`] lets the VM's cap fall to what the pod asks for after it. The cap rises with what the
//! kubelet has allocated, as the watch shows it: that is where growth is decided, since the kubelet compares it with all
//! pods that it has admitted.
//!
//! A write is for one revision of the pod, and takes effect on that or not at all. While its outcome is not known, the
//! same is sent again; once the pod is seen with another revision, the pod says what became of it. A pod is asked to grow
//! only when its kubelet has seen the spec and carried it out: what a kubelet said of an earlier spec covers nothing.
//! What the kubelet defers or cannot carry out, and what it allocates without raising the container's limits, is taken back, so that the scheduler counts no room that nobody gets.
//!
//! Nothing covers a VM's pod that an earlier plugin may have sent a resize for, before its revision is another
//! ([`Pods::inherit_resizes`]).

use crate::allotment::{Denied, Needed};
use crate::cluster::Node;
use crate::pods::Pods;
use crate::pods::change::{Kind, Resize, Written};
use crate::pods::known::{Known, Sent, SentState};
use crate::pods::pools::Mode;
use crate::pods::status::NotResized;
use std::sync::Arc;
use windlass_protocol::pod::Fixed;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmName};

/// A pod gives back no less than this on an axis: smaller steps are joined.
const STEP: Resources = Resources { cpu: MilliCpu::from_milli(100), mem: Bytes::from_mib(64) };

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// The VMs of nodes whose pods are resized.
    pub fn resized(&self) -> impl Iterator<Item = &VmName> {
        let on = self
            .nodes
            .in_order()
            .into_iter()
            .map(|(_, held)| held)
            .filter(|held| held.is(Mode::Resize));
        let is_vm = |name: &&VmName| self.pods.get(name).is_some_and(Known::is_vm);
        on.flat_map(|held| &held.pods).map(|name| &**name).filter(is_vm)
    }

    /// Whether the pod of this VM is on such a node.
    pub fn is_resized(&self, vm: &VmName) -> bool {
        self.resizable(vm).is_some()
    }

    /// Whether a permit of this VM waits for its kubelet.
    pub fn waits_for_kubelet(&self, vm: &VmName) -> bool {
        self.node_of(vm).is_some_and(|node| node.with_books(|books| books.waits_for_kubelet(vm)))
    }

    /// Why the pod of this VM cannot be resized at all, if it is on such a node and its own object: and its uid.
    pub fn fixed(&self, vm: &VmName) -> Option<(&str, Fixed)> {
        let known = self.resizable(vm)?;
        Some((&known.uid, known.container()?.fixed?))
    }

    /// Why the pod of this VM is not resized, if it is on such a node and its own object.
    pub(crate) fn not_resized(&self, vm: &VmName) -> Option<NotResized> {
        let known = self.resizable(vm)?;
        let pod = vm.clone();
        if let Some(fixed) = known.container().and_then(|container| container.fixed) {
            return Some(NotResized { pod, why: fixed.words(), until: None });
        }
        let (why, until) = self.node_of(vm)?.with_books(|books| books.resize_denied(vm))?;
        Some(NotResized { pod, why: why.word(), until: Some(until) })
    }

    /// What is to be written of the pod of this VM.
    pub fn resize_due(&self, now: Moment, vm: &VmName) -> Option<Resize> {
        let known = self.resizable(vm)?;
        let container = known.container().filter(|container| container.fixed.is_none())?;
        let allocation = known.allocation.as_deref()?;
        if known.is_terminating() {
            return None;
        }
        let books = self.node_of(vm)?;
        let pending = allocation.pending.filter(|_| container.allocated != Some(container.spec));
        let are_low = allocation.is_settled() && !container.sure().covers(container.spec);
        let is_limited = books.with_books(|books| books.is_limited(now, vm, are_low));
        let denied = match pending {
            Some(pending) => Some(Denied::ByKubelet(pending)),
            None => is_limited.then_some(Denied::ByLimits),
        };
        let to = match &known.sent {
            Some(sent) => match sent.state {
                SentState::Answered | SentState::Inherited => return None,
                SentState::Open(_) => sent.to,
            },
            None => match (denied, container.allocated) {
                (_, None) => return None,
                (Some(Denied::ByLimits), Some(_)) => container.sure(),
                (Some(Denied::ByKubelet(_) | Denied::ByApiServer), Some(allocated)) => allocated,
                (None, Some(_)) => {
                    let needed = books.with_books(|books| books.allotment_needed(now, vm))?;
                    needed.to(container.spec, allocation.is_settled())
                }
            },
        };
        let kind = match denied {
            Some(why) => Kind::GivesUp(why),
            None if container.spec.covers(to) => Kind::Shrinks,
            None => Kind::Grows,
        };
        let resize = || Resize {
            vm: vm.clone(),
            uid: known.uid.clone(),
            revision: known.revision.clone(),
            container: container.name.clone(),
            to,
            limits: container.limits_for(to),
            overhead: container.overhead,
            kind,
        };
        let rests = || {
            books.with_books(|books| books.resize_denied(vm).is_some_and(|(_, until)| now < until))
        };
        // What the API server refuses it refuses again.
        let is_due = to != container.spec && (matches!(kind, Kind::GivesUp(_)) || !rests());
        is_due.then(resize)
    }

    /// This resize is sent now: the VM is promised no more than its pod asks for after it. `false`: it is not to be sent,
    /// since the VM was promised what its pod would give up, or the pod is another by now.
    pub fn resize_sent(&mut self, now: Moment, resize: &Resize) -> bool {
        let Resize { vm, uid, revision, to, kind, .. } = resize;
        let known = self.resizable(vm);
        let known = known.filter(|known| known.uid == *uid && known.revision == *revision);
        let Some(known) = known else { return false };
        let attempts = match known.sent.as_deref() {
            None => 0,
            Some(Sent { to: before, state: SentState::Open(attempts), .. }) if before == to => {
                *attempts
            }
            Some(_) => return false,
        };
        let mut next = known.clone();
        let state = SentState::Open(attempts.saturating_add(1));
        next.sent = Some(Box::new(Sent { revision: revision.clone(), to: *to, state }));
        let Some(node) = self.node_of(vm) else { return false };
        let is_free = node.with_books(|books| {
            let is_free = books.allotment_falls(vm, *to);
            let is_known = books.resize_denied(vm).is_some_and(|(_, until)| now < until);
            if let (true, false, Kind::GivesUp(why)) = (is_free, is_known, kind) {
                books.allotment_refused(now, vm, *why);
            }
            is_free
        });
        if is_free {
            self.put(vm, Some(next));
        }
        is_free
    }

    /// What became of a resize that was sent.
    pub fn resize_written(&mut self, now: Moment, resize: &Resize, written: Written) {
        let mut next = self.pods.get(&resize.vm).filter(|known| known.uid == resize.uid).cloned();
        let Some(known) = &mut next else { return };
        let Some(sent) = &mut known.sent else { return };
        let SentState::Open(attempts) = sent.state else { return };
        if sent.revision != resize.revision {
            return;
        }
        match written {
            Written::Answered => sent.state = SentState::Answered,
            Written::Unknown => return,
            Written::Refused => {
                if let Some(node) = self.node_of(&resize.vm) {
                    let why = Denied::ByApiServer;
                    node.with_books(|books| books.allotment_refused(now, &resize.vm, why));
                }
                // An earlier one that was not answered may yet take effect.
                if attempts > 1 {
                    return;
                }
                known.sent = None;
            }
        }
        self.put(&resize.vm, next);
    }

    /// Whatever an earlier plugin may have sent can still take effect on the pod of each VM as it is now; which those are.
    /// A node that is not known yet may be one whose pods are resized.
    pub fn inherit_resizes(&mut self) -> Vec<(VmName, String)> {
        if !self.pools.have(Mode::Resize) {
            return Vec::new();
        }
        let may_be = |known: &Known| {
            let node = known.place().and_then(|node| self.nodes.get(node));
            let node = node.and_then(|held| held.there());
            known.place().is_some() && node.is_none_or(|seen| seen.mode == Mode::Resize)
        };
        let vms = self.pods.in_order().into_iter().filter(|(_, known)| known.is_own_vm());
        let (may_be, others): (Vec<_>, Vec<_>) = vms.partition(|(_, known)| may_be(known));
        // Before their nodes were known they may have been taken for such.
        let others = others.into_iter().filter(|(_, known)| known.is_inherited());
        let named = |(name, known): (&Arc<VmName>, &Known)| ((**name).clone(), known.uid.clone());
        let others: Vec<_> = others.map(named).collect();
        let inherited: Vec<_> = may_be.into_iter().map(named).collect();
        for (name, uid) in &others {
            self.inherited_is_too_old(name, uid);
        }
        for (name, _) in &inherited {
            let mut next = self.pods.get(name).cloned();
            if let Some(known) = &mut next {
                let (to, state) = (Resources::ZERO, SentState::Inherited);
                let revision = known.revision.clone();
                known.sent = Some(Box::new(Sent { revision, to, state }));
            }
            self.put(name, next);
        }
        inherited
    }

    /// The pod of a VM that is its own object, on a node whose pods are resized.
    fn resizable(&self, vm: &VmName) -> Option<&Known> {
        let known = self.pods.get(vm).filter(|known| known.is_own_vm())?;
        self.nodes.get(known.place()?).filter(|held| held.is(Mode::Resize))?;
        Some(known)
    }
}

// === impl Needed ===

impl Needed {
    /// What a container with this spec is to request. It is asked to grow only once the spec is settled.
    fn to(self, spec: Resources, is_settled: bool) -> Resources {
        let Self { size, least, may_grow } = self;
        let grows = is_settled && may_grow;
        let on = |spec: u64, size: u64, least: u64, step: u64| {
            if size > spec {
                return if grows { size } else { spec };
            }
            let to = size.max(least.min(spec));
            if spec - to >= step { to } else { spec }
        };
        let (cpu, mem) = (spec.cpu.milli(), spec.mem.bytes());
        let cpu = on(cpu, size.cpu.milli(), least.cpu.milli(), STEP.cpu.milli());
        let mem = on(mem, size.mem.bytes(), least.mem.bytes(), STEP.mem.bytes());
        Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) }
    }
}
