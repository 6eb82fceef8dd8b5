//! One pod, as far as it was told of, and what it takes of which node.
//!
//! A revision is opaque, so no two words on a pod can be told apart by age but for three facts that never
//! go back: a pod that has a node keeps it, a pod that is being deleted is deleted, a pod that has ended
//! has ended. A word that denies one of them, or whose revision came before, is late and changes nothing.
//!
//! A watch and its lists come in order, so a list is newer than what the watch said. A pod that was read
//! may be newer than either: what only a read has shown is kept until the watch or a list shows it, or
//! another read denies it.

mod placed;

pub(crate) use placed::Placed;

use crate::ceilings::is_of_binding;
use crate::pods::record::Record;
use crate::pods::share::{Counted, Share};
use std::sync::Arc;
use windlass_protocol::annotations::CEILING;
use windlass_protocol::config::Problem;
use windlass_protocol::pod::{Allocation, Pod, PodVm, VmContainer};
use windlass_protocol::{Bytes, Resources, VmName};

/// As many earlier revisions are remembered.
const EARLIER: usize = 4;

/// As many problems of a VM's annotations are kept.
const PROBLEMS: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) uid: String,
    pub(crate) revision: String,
    /// The node that the API server says.
    node: Option<Arc<str>>,
    pub(crate) has_ended: bool,
    is_terminating: bool,
    requests: Resources,
    vm: Option<Box<PodVm>>,
    pub(crate) is_headroom: bool,
    /// Another pod of its name was on a node before, or it was itself.
    pub(crate) has_namesake: bool,
    pub(crate) allocation: Option<Box<Allocation>>,
    /// What was sent last to change a headroom pod or the pod of a VM, while the pod has the revision that it was sent for.
    pub(crate) sent: Option<Box<Sent>>,
    pub(crate) record: Record,
    /// Revisions that the watch delivered before.
    earlier: Vec<String>,
    pub(crate) told: Told,
    pub(crate) placed: Placed,
}

/// There are 150,000. What few pods have at a time belongs in a box.
const _: () = assert!(size_of::<Known>() <= 216, "what is known of a pod grew");

/// A change of a pod that takes effect on one revision of it, if at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The revision.
    pub(crate) revision: String,
    /// What the pod asks for after it; of a VM's pod, its container.
    pub(crate) to: Resources,
    pub(crate) state: SentState,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentState {
    /// This many were sent, and none was answered.
    Open(u32),
    /// The API server has answered: the pod will be seen with another revision, unless that was lost since.
    Answered,
    /// An earlier plugin may have sent one.
    Inherited,
}

/// How a pod came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was read; no watch and no list has told of it.
    Read,
    /// A watch or a list has told of it, and it was read since.
    Ahead,
    /// A watch or a list told of it last.
    Watched,
}

// === impl Known ===

impl Known {
    /// A pod that nothing was known of.
    pub(crate) fn of(pod: Pod, told: Told) -> Self {
        let record = Record::of(&pod);
        Self {
            uid: pod.uid,
            revision: pod.revision,
            node: pod.node.map(Into::into),
            has_ended: pod.phase.is_ended(),
            is_terminating: pod.is_terminating,
            requests: pod.requests,
            record,
            vm: pod.vm.map(with_few_problems),
            is_headroom: pod.is_headroom,
            has_namesake: false,
            allocation: pod.allocation,
            sent: None,
            earlier: Vec::new(),
            told,
            placed: Placed::No,
        }
    }

    /// Whether a word on the same pod is no news.
    pub(crate) fn is_late(&self, pod: &Pod) -> bool {
        self.revision == pod.revision
            || self.earlier.contains(&pod.revision)
            || (self.node.is_some() && pod.node.is_none())
            || (self.has_ended && !pod.phase.is_ended())
            || (self.is_terminating && !pod.is_terminating)
            || self.generation() > pod.allocation.as_ref().map(|it| it.generation)
    }

    /// A new word on the same pod.
    pub(crate) fn told(self, pod: Pod, told: Told) -> Self {
        let Self { mut earlier, placed, vm, record, .. } = self;
        let sent = self.sent.filter(|sent| sent.revision == pod.revision);
        if self.told == Told::Watched && self.revision != pod.revision {
            let many = (earlier.len() + 1).saturating_sub(EARLIER);
            earlier.drain(..many);
            earlier.push(self.revision);
        }
        let told = match (self.told, told) {
            (Told::Watched | Told::Ahead, Told::Read) => Told::Ahead,
            (_, told) => told,
        };
        let placed = match told {
            Told::Read | Told::Ahead => placed.read(&pod),
            Told::Watched => placed.shown(&pod),
        };
        Self { earlier, placed, sent, ..Self::of(pod, told) }.still((vm, record))
    }

    /// A list told of the pod: no word that came before counts.
    pub(crate) fn listed(self, pod: Pod) -> Self {
        let placed = self.placed.shown(&pod);
        let mut sent = self.sent.filter(|sent| sent.revision == pod.revision);
        if let Some(sent) = &mut sent {
            sent.state = sent.state.listed();
        }
        Self { placed, sent, ..Self::of(pod, Told::Watched) }.still((self.vm, self.record))
    }

    /// It had this place, with this reserved for it, and may have none any more.
    pub(crate) fn had(self, place: impl FnOnce() -> Option<(Arc<str>, Resources)>) -> Self {
        let has_none = self.is_vm() && !self.has_ended && self.place().is_none();
        match has_none.then(place).flatten() {
            Some((node, reserved)) => Self { placed: Placed::Lost { node, reserved }, ..self },
            None => self,
        }
    }

    /// A pod that was a VM is one to its end, whatever its labels say: the VM may have what it was granted.
    fn still(self, (vm, record): (Option<Box<PodVm>>, Record)) -> Self {
        if self.vm.is_some() { self } else { Self { vm, record, ..self } }
    }

    /// The node that holds room for the pod, if any.
    pub(crate) fn place(&self) -> Option<&str> {
        if self.has_ended { None } else { self.node.as_deref().or_else(|| self.placed.node()) }
    }

    /// The name of its node is in memory once.
    pub(crate) fn share_node(&mut self, shared: &Arc<str>) {
        let of_placed = self.placed.node_mut();
        for node in self.node.as_mut().into_iter().chain(of_placed).filter(|node| *node == shared) {
            *node = Arc::clone(shared);
        }
    }

    pub(crate) const fn is_vm(&self) -> bool {
        self.vm.is_some()
    }

    /// The VM that the pod is or runs.
    pub(crate) fn vm(&self) -> Option<&PodVm> {
        self.vm.as_deref()
    }

    /// Whether the pod is a VM and no other object's: the plugin may resize it.
    pub(crate) const fn is_own_vm(&self) -> bool {
        match self.record {
            Record::OnPod => self.vm.is_some(),
            Record::Nowhere | Record::OnObject(_) => false,
        }
    }

    /// The object of the VM, if that is another than the pod.
    pub(crate) fn other_object(&self) -> Option<&VmName> {
        self.vm().map(|vm| &vm.object).filter(|_| !self.is_own_vm())
    }

    /// The VM's memory is in steps of this, whatever its pod says: NeonVM before v0.27.0 has its pods say nothing of it.
    pub(crate) fn counts_in(&mut self, slot: Bytes) {
        if let Some(vm) = &mut self.vm {
            vm.memory_slot = slot;
        }
    }

    /// The container that a VM runs in.
    pub(crate) fn container(&self) -> Option<&VmContainer> {
        self.vm.as_ref()?.container.as_deref()
    }

    /// The number of the pod's spec, where it is read.
    fn generation(&self) -> Option<i64> {
        self.allocation.as_ref().map(|allocation| allocation.generation)
    }

    /// Whether an earlier plugin may have sent a change of it.
    pub(crate) fn is_inherited(&self) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.state == SentState::Inherited)
    }

    pub(crate) const fn is_terminating(&self) -> bool {
        self.is_terminating
    }

    /// What the pod takes of its node.
    pub(crate) fn share(&self) -> Share {
        let requests = self.requests;
        let Some(vm) = &self.vm else {
            return if self.is_headroom {
                Share::Headroom { requests, sure: self.sure_headroom() }
            } else {
                Share::Other(requests)
            };
        };
        let ceiling = self.record.ceiling(vm);
        let recorded = ceiling.map(|ceiling| ceiling.size);
        let counted = match &self.placed {
            Placed::No | Placed::Lost { .. } => Counted::AtMost(recorded.unwrap_or(vm.bounds.max)),
            // The headroom of the ceiling that these books had recorded with the binding is promised to no agent yet.
            Placed::Shown { reserved, .. } => match recorded {
                Some(size) if !ceiling.is_some_and(is_of_binding) => Counted::AtMost(size),
                Some(_) | None => Counted::AsPlaced(*reserved),
            },
            Placed::UnderWay { reserved, .. } | Placed::Bound { reserved, .. } => {
                Counted::AsPlaced(*reserved)
            }
        };
        Share::of_vm(vm, requests, self.allocation.as_deref(), counted, &self.record)
            .resized(self.sent.as_ref().map(|sent| sent.to), self.is_terminating)
            .of_a_name_that_was_there(self.has_namesake)
    }

    /// What a headroom pod holds whatever becomes of it: nothing once it goes, and no more than was asked for it last.
    fn sure_headroom(&self) -> Resources {
        if self.is_terminating {
            return Resources::ZERO;
        }
        let sure = self.allocation.as_ref().map(|allocation| allocation.sure());
        let sure = sure.unwrap_or_default();
        self.sent.as_ref().map_or(sure, |sent| sure.min(sent.to))
    }
}

// === impl SentState ===

impl SentState {
    /// A list has the revision that it was sent for. The list began before the answer, or the API server has lost what it
    /// answered: the same is sent again.
    const fn listed(self) -> Self {
        match self {
            Self::Answered => Self::Open(1),
            Self::Open(_) | Self::Inherited => self,
        }
    }
}

/// What people are told of the annotations of a VM: the first problems, and none of what a plugin wrote itself.
fn with_few_problems(mut vm: Box<PodVm>) -> Box<PodVm> {
    let is_a_persons = |problem: &Problem| !problem.field.starts_with(CEILING);
    vm.problems.retain(is_a_persons);
    vm.problems.truncate(PROBLEMS);
    vm.problems.shrink_to_fit();
    vm
}
