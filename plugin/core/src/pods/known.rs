//! One pod, as far as it was told of, and what it takes of which node.
//!
//! A revision is opaque, so no two words on a pod can be told apart by age but for three facts that never
//! go back: a pod that has a node keeps it, a pod that is being deleted is deleted, a pod that has ended
//! has ended. A word that denies one of them, or whose revision came before, is late and changes nothing.
//!
//! A watch and its lists come in order, so a list is newer than what the watch said. A pod that was read
//! may be newer than either: what only a read has shown is kept until the watch or a list shows it, or
//! another read denies it.
//!
//! ```text
//!           place                 bound, or read there          shown by the watch
//!   No ───────────────► UnderWay ──────────────────────► Bound ────────────────────► Shown
//!   ▲                       │                              │
//!   └───────────────────────┴──────────────────────────────┘
//!     refused, or on no node, on another, ended, gone
//! ```

use crate::allotment::{Allotted, Resizable};
use crate::ceilings::{Kept, is_of_binding};
use std::sync::Arc;
use windlass_protocol::pod::{Allocation, Ceiling, Fixed, Pod, PodVm, VmContainer};
use windlass_protocol::{Resources, VmName, VmRecord};

/// As many earlier revisions are remembered.
const EARLIER: usize = 4;

/// A binding is sent for this many revisions of a pod, the last of which are remembered.
const SENT: usize = 8;

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
    /// The API server has answered: the pod will be seen with another revision.
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

/// Whether these books placed a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// They did not.
    No,
    /// It may be bound, or become so: no answer tells.
    UnderWay {
        node: Arc<str>,
        reserved: Resources,
        /// Revisions of the pod for which a binding was sent.
        sent: Vec<String>,
        attempts: u32,
    },
    /// The API server said that it is bound, or the pod was read there; the watch does not show it yet.
    Bound { node: Arc<str>, reserved: Resources },
    /// It is bound where it was placed, and shows it.
    Shown { node: Arc<str>, reserved: Resources },
}

/// Where the ceiling of a pod's VM is recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// Nowhere: the pod runs no VM, or one whose object is not followed.
    Nowhere,
    /// In an annotation of the pod, which is the VM.
    OnPod,
    /// In an annotation of the VM's object. `None`: the object is not known, or names another pod as the one that runs the VM.
    OnObject(Option<Box<OnObject>>),
}

/// What the object of a VM says of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OnObject {
    pub(crate) uid: String,
    /// What the VM may have by it.
    pub(crate) has: Resources,
    pub(crate) ceiling: Option<Ceiling>,
}

/// What a pod takes of a node.
#[expect(clippy::large_enum_variant, reason = "it is made for a call, and not kept")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Its requests, in full.
    Other(Resources),
    /// An entry in the books.
    Vm {
        record: VmRecord,
        requests: Resources,
        /// What of its requests is allocated to it and stays so.
        sure: Resources,
        /// The most that it may grow to.
        most: Resources,
        ceiling: Resources,
        /// What is recorded of it, where its object is followed.
        kept: Option<Kept>,
        /// What its own container has.
        own: Own,
    },
    /// Room for VMs, where the node's pool has headroom.
    Headroom {
        requests: Resources,
        /// What of its requests is allocated to it and stays so.
        sure: Resources,
    },
}

/// What the container of a VM takes of its node, where that is what the VM may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// Its requests, as the scheduler counts them.
    pub(crate) requests: Resources,
    /// What is allocated to it.
    pub(crate) allotted: Allotted,
    /// The most that it may have before its agent speaks.
    pub(crate) most: Resources,
}

// === impl Known ===

impl Known {
    /// A pod that nothing was known of.
    pub(crate) fn of(pod: Pod, told: Told) -> Self {
        let record = if is_object(&pod) { Record::OnPod } else { Record::Nowhere };
        Self {
            uid: pod.uid,
            revision: pod.revision,
            node: pod.node.map(Into::into),
            has_ended: pod.phase.is_ended(),
            is_terminating: pod.is_terminating,
            requests: pod.requests,
            record,
            vm: pod.vm.map(without_words),
            is_headroom: pod.is_headroom,
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
        let sent = self.sent.filter(|sent| sent.revision == pod.revision);
        Self { placed, sent, ..Self::of(pod, Told::Watched) }.still((self.vm, self.record))
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

    /// The container that a VM runs in.
    pub(crate) fn container(&self) -> Option<&VmContainer> {
        self.vm.as_ref()?.container.as_deref()
    }

    /// The number of the pod's spec, where it is read.
    fn generation(&self) -> Option<i64> {
        self.allocation.as_ref().map(|allocation| allocation.generation)
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
            Placed::No => recorded.unwrap_or(vm.bounds.max),
            // The headroom of the ceiling that these books had recorded with the binding is promised to no agent yet.
            Placed::Shown { reserved, .. } if ceiling.is_none_or(is_of_binding) => *reserved,
            Placed::Shown { reserved, .. } => recorded.unwrap_or(*reserved),
            Placed::UnderWay { reserved, .. } | Placed::Bound { reserved, .. } => *reserved,
        };
        Share::of_vm(vm, requests, self.allocation.as_deref(), counted, &self.record)
            .resized(self.sent.as_deref(), self.is_terminating)
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

// === impl Record ===

impl Record {
    /// The ceiling that counts. A ceiling elsewhere than where it belongs is no word of a plugin.
    fn ceiling(&self, vm: &PodVm) -> Option<Ceiling> {
        match self {
            Self::Nowhere | Self::OnObject(None) => None,
            Self::OnPod => vm.ceiling,
            Self::OnObject(Some(object)) => object.ceiling,
        }
    }

    /// What is recorded of the VM, where that is followed.
    fn kept(&self, vm: &PodVm) -> Option<Kept> {
        match self {
            Self::Nowhere => None,
            Self::OnPod | Self::OnObject(_) => {
                Some(Kept { max: vm.bounds.max, shown: self.ceiling(vm), has: self.has() })
            }
        }
    }

    /// What the VM may have by its object.
    fn has(&self) -> Resources {
        match self {
            Self::Nowhere | Self::OnPod | Self::OnObject(None) => Resources::ZERO,
            Self::OnObject(Some(object)) => object.has,
        }
    }
}

// === impl Placed ===

impl Placed {
    /// The node where it was placed, while the pod does not show it.
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::UnderWay { node, .. } | Self::Bound { node, .. } => Some(node),
            Self::No | Self::Shown { .. } => None,
        }
    }

    fn node_mut(&mut self) -> Option<&mut Arc<str>> {
        match self {
            Self::UnderWay { node, .. } | Self::Bound { node, .. } | Self::Shown { node, .. } => {
                Some(node)
            }
            Self::No => None,
        }
    }

    /// What was reserved for it.
    pub(crate) const fn reserved(&self) -> Option<Resources> {
        match self {
            Self::UnderWay { reserved, .. }
            | Self::Bound { reserved, .. }
            | Self::Shown { reserved, .. } => Some(*reserved),
            Self::No => None,
        }
    }

    /// Whether the API server said that it is bound.
    pub(crate) const fn is_bound(&self) -> bool {
        match self {
            Self::Bound { .. } | Self::Shown { .. } => true,
            Self::No | Self::UnderWay { .. } => false,
        }
    }

    /// The API server said that it is bound.
    pub(crate) fn bind(&mut self) {
        if let Self::UnderWay { node, reserved, .. } = self {
            *self = Self::Bound { node: Arc::clone(node), reserved: *reserved };
        }
    }

    /// One more binding is sent, for this revision of the pod.
    pub(crate) fn send(&mut self, revision: &str) {
        if let Self::UnderWay { sent, attempts, .. } = self {
            *attempts = attempts.saturating_add(1);
            sent.retain(|known| known != revision);
            sent.push(revision.to_owned());
            let many = sent.len().saturating_sub(SENT);
            sent.drain(..many);
        }
    }

    /// The watch or a list shows the pod.
    fn shown(self, pod: &Pod) -> Self {
        match (self, &pod.node) {
            (Self::No, _) | (Self::Shown { .. }, None) => Self::No,
            (_, _) if pod.phase.is_ended() => Self::No,
            (placed, None) => placed,
            (
                Self::UnderWay { node, reserved, .. }
                | Self::Bound { node, reserved }
                | Self::Shown { node, reserved },
                Some(on),
            ) => {
                if *node == **on {
                    Self::Shown { node, reserved }
                } else {
                    Self::No
                }
            }
        }
    }

    /// The pod was read.
    fn read(self, pod: &Pod) -> Self {
        match (self, &pod.node) {
            (_, _) if pod.phase.is_ended() => Self::No,
            (Self::UnderWay { node, reserved, .. } | Self::Bound { node, reserved }, Some(on)) => {
                let reserved = if *node == **on { reserved } else { Share::of(pod).most() };
                Self::Bound { node: on.as_str().into(), reserved }
            }
            (placed, _) => placed,
        }
    }
}

// === impl Share ===

impl Share {
    /// What a pod takes that nothing else is known of.
    pub(crate) fn of(pod: &Pod) -> Self {
        let requests = pod.requests;
        let Some(vm) = &pod.vm else { return Self::Other(requests) };
        let record = if is_object(pod) { Record::OnPod } else { Record::Nowhere };
        let ceiling = record.ceiling(vm);
        let most = ceiling.map_or(vm.bounds.max, |ceiling| ceiling.size);
        Self::of_vm(vm, requests, pod.allocation.as_deref(), most, &record)
    }

    /// Before its kubelet has said that the VM's pod is admitted, the requests of its spec are as good as its own: they are
    /// reserved for it, and it is admitted with them. The VM counts with `most` until its agent speaks.
    fn of_vm(
        vm: &PodVm,
        requests: Resources,
        allocation: Option<&Allocation>,
        most: Resources,
        on: &Record,
    ) -> Self {
        let kept = on.kept(vm);
        let spec = |it: &Allocation| it.allocated.unwrap_or(it.spec).min(it.spec);
        let sure = allocation.map_or(requests, spec).min(requests);
        let (record, ceiling) = (vm.record(), most.max(requests));
        let most = vm.bounds.max.max(requests).max(has_by_object(kept));
        // A part of a slot takes the whole of it.
        let most = Resources { mem: most.mem.round_up(record.memory_slot), ..most };
        let own = kept.filter(|_| *on == Record::OnPod);
        let own = Own::of(vm, requests, sure, ceiling.max(has_by_object(kept)), own);
        Self::Vm { record, requests, sure, most, ceiling, kept, own }
    }

    /// The same, while a resize of the VM's container may take effect, or while the pod goes.
    fn resized(mut self, sent: Option<&Sent>, is_terminating: bool) -> Self {
        if let Self::Vm { own: Own { allotted, .. }, .. } = &mut self {
            allotted.sure = sent.map_or(allotted.sure, |sent| allotted.sure.min(sent.to));
            if is_terminating && allotted.resizable == Resizable::Yes {
                allotted.resizable = Resizable::No;
            }
        }
        self
    }

    /// What it takes of a node from its first moment there, as the books count it.
    pub(crate) fn asked(&self) -> Resources {
        match self {
            Self::Other(requests) | Self::Headroom { requests, .. } => *requests,
            Self::Vm { record, requests, kept, .. } => {
                // A VM starts with no less than its minimum.
                let least = requests.max(record.min).max(has_by_object(*kept));
                Resources { mem: least.mem.round_up(record.memory_slot), ..least }
            }
        }
    }

    /// What it takes from its first moment on a node whose VMs' own pods are resized: what is reserved for the VM, and what its
    /// pod requests beside that.
    pub(crate) fn asked_apart(&self) -> Resources {
        match self {
            Self::Other(requests) | Self::Headroom { requests, .. } => *requests,
            Self::Vm { record, requests, own, kept, .. } => {
                let most = own.allotted.sure.max(record.min).max(recorded(*kept));
                let most = own.requests.max(most);
                let most = Resources { mem: most.mem.round_up(record.memory_slot), ..most };
                most.saturating_add(requests.saturating_sub(own.requests))
            }
        }
    }

    /// The most that it may have before its agent speaks.
    fn most(&self) -> Resources {
        match self {
            Self::Other(requests) | Self::Headroom { requests, .. } => *requests,
            Self::Vm { ceiling, .. } => *ceiling,
        }
    }

    /// What it has from its first moment beyond what its pod requests.
    pub(crate) fn beyond_requests(&self) -> Resources {
        match self {
            Self::Other(_) | Self::Headroom { .. } => Resources::ZERO,
            Self::Vm { record, requests, kept, .. } => {
                record.min.max(has_by_object(*kept)).saturating_sub(*requests)
            }
        }
    }
}

// === impl Own ===

impl Own {
    /// A VM whose pod is not the plugin's to resize stays at what the pod has. A VM that was granted more where its ceiling was
    /// recorded may have that. `kept`: the pod is the VM. A VM of another object may have all that `ceiling` says.
    fn of(
        vm: &PodVm,
        requests: Resources,
        sure: Resources,
        ceiling: Resources,
        kept: Option<Kept>,
    ) -> Self {
        // Requests of the pod's own level count in place of those of its containers.
        let container = vm.container.as_deref().filter(|it| it.fixed != Some(Fixed::OfPod));
        let resizable = match (kept, container) {
            (None, _) => Resizable::OfAnother,
            (Some(_), Some(it)) if it.fixed.is_none() => Resizable::Yes,
            (Some(_), _) => Resizable::No,
        };
        let more = if kept.is_none() { ceiling } else { recorded(kept) };
        let sure = container.map_or(sure, VmContainer::sure);
        Self {
            requests: container.map_or(requests, |container| container.effective),
            allotted: Allotted { sure, resizable },
            most: sure.max(vm.bounds.min).max(more),
        }
    }
}

/// What the VM has by an object that is not its pod.
fn has_by_object(kept: Option<Kept>) -> Resources {
    kept.map(|kept| kept.has).unwrap_or_default()
}

/// The recorded ceiling; nothing, if there is none.
fn recorded(kept: Option<Kept>) -> Resources {
    kept.and_then(|kept| kept.shown).map(|ceiling| ceiling.size).unwrap_or_default()
}

/// Whether the pod is its VM's object: the controller of another object has its way with the pod's annotations.
fn is_object(pod: &Pod) -> bool {
    pod.vm.as_ref().is_some_and(|vm| vm.object == pod.name)
}

/// What was not valid was logged when it was read.
fn without_words(mut vm: Box<PodVm>) -> Box<PodVm> {
    vm.problems = Vec::new();
    vm
}
