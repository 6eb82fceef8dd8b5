//! What a pod takes of its node, and what of that is its VM's.

use crate::allotment::{Allotted, Resizable};
use crate::ceilings::Kept;
use crate::pods::record::Record;
use windlass_protocol::pod::{Allocation, Ceiling, Fixed, Pod, PodVm, VmContainer};
use windlass_protocol::{Resources, VmRecord};

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
        /// A request for it may be one for another VM of its name.
        has_namesake: bool,
    },
    /// Room for VMs, where the node's pool has headroom.
    Headroom {
        requests: Resources,
        /// What of its requests is allocated to it and stays so.
        sure: Resources,
    },
}

/// What a VM counts with until its agent speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// The most that it may have.
    AtMost(Resources),
    /// What its pod was placed with, whatever else the pod runs.
    AsPlaced(Resources),
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

// === impl Share ===

impl Share {
    /// What a pod takes that nothing else is known of.
    pub(crate) fn of(pod: &Pod) -> Self {
        let requests = pod.requests;
        let Some(vm) = &pod.vm else { return Self::Other(requests) };
        let record = Record::of(pod);
        let ceiling = record.ceiling(vm);
        let most = ceiling.map_or(vm.bounds.max, |ceiling| ceiling.size);
        Self::of_vm(vm, requests, pod.allocation.as_deref(), Counted::AtMost(most), &record)
    }

    /// Before its kubelet has said that the VM's pod is admitted, the requests of its spec are as good as its own: they are
    /// reserved for it, and it is admitted with them.
    pub(crate) fn of_vm(
        vm: &PodVm,
        requests: Resources,
        allocation: Option<&Allocation>,
        counted: Counted,
        on: &Record,
    ) -> Self {
        let spec = |it: &Allocation| it.allocated.unwrap_or(it.spec).min(it.spec);
        let sure = allocation.map_or(requests, spec).min(requests);
        let alone = vm.container.as_deref().map_or(sure, VmContainer::sure).min(sure);
        let kept = on.kept(vm, alone);
        let (Counted::AtMost(size) | Counted::AsPlaced(size)) = counted;
        let (record, ceiling) = (vm.record(), size.max(requests));
        let most = vm.bounds.max.max(requests).max(has_by_object(kept));
        // A part of a slot takes the whole of it.
        let most = Resources { mem: most.mem.round_up(record.memory_slot), ..most };
        let own = Own::of(vm, (requests, sure), counted, kept, *on == Record::OnPod);
        let has_namesake = false;
        Self::Vm { record, requests, sure, most, ceiling, kept, own, has_namesake }
    }

    /// The same, of a pod whose name was on a node before.
    pub(crate) fn of_a_name_that_was_there(mut self, is_so: bool) -> Self {
        if let Self::Vm { has_namesake, .. } = &mut self {
            *has_namesake = is_so;
        }
        self
    }

    /// The same, while a resize of the VM's container may take effect, or while the pod goes.
    pub(crate) fn resized(mut self, to: Option<Resources>, is_terminating: bool) -> Self {
        if let Self::Vm { own: Own { allotted, .. }, kept, .. } = &mut self {
            if let Some(to) = to {
                allotted.sure = allotted.sure.min(to);
                kept.iter_mut().for_each(|kept| kept.alone = kept.alone.min(to));
            }
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
    /// pod requests beside that. As the books count it elsewhere, it takes `asked`.
    pub(crate) fn asked_apart(&self, asked: Resources) -> Resources {
        match self {
            Self::Other(requests) | Self::Headroom { requests, .. } => *requests,
            Self::Vm { record, requests, own, kept, .. } => {
                let most = match own.allotted.resizable {
                    Resizable::OfAnother if asked == self.asked() => own.starts_with(record.min),
                    Resizable::OfAnother => asked,
                    Resizable::Yes | Resizable::No => {
                        own.allotted.sure.max(record.min).max(size_of(recorded(*kept)))
                    }
                };
                let most = own.requests.max(most);
                let most = Resources { mem: most.mem.round_up(record.memory_slot), ..most };
                most.saturating_add(requests.saturating_sub(own.requests))
            }
        }
    }

    /// The most that it may have before its agent speaks.
    pub(crate) fn most(&self) -> Resources {
        match self {
            Self::Other(requests) | Self::Headroom { requests, .. } => *requests,
            Self::Vm { ceiling, .. } => *ceiling,
        }
    }

    /// What it has from its first moment beyond what its pod requests. As the books count it, it takes `asked`.
    pub(crate) fn beyond_requests(&self, asked: Resources) -> Resources {
        match self {
            Self::Other(_) | Self::Headroom { .. } => Resources::ZERO,
            Self::Vm { requests, .. } if asked != self.asked() => asked.saturating_sub(*requests),
            Self::Vm { record, requests, kept, .. } => {
                record.min.max(has_by_object(*kept)).saturating_sub(*requests)
            }
        }
    }
}

// === impl Own ===

impl Own {
    /// A VM whose pod is not the plugin's to resize stays at what the pod has. A VM that was granted more where its ceiling was
    /// recorded may have that. A VM of another object than the pod may have all that it counts with.
    fn of(
        vm: &PodVm,
        (requests, sure): (Resources, Resources),
        counted: Counted,
        kept: Option<Kept>,
        is_object: bool,
    ) -> Self {
        // Requests of the pod's own level count in place of those of its containers.
        let container = vm.container.as_deref().filter(|it| it.fixed != Some(Fixed::OfPod));
        let resizable = match container {
            _ if !is_object => Resizable::OfAnother,
            Some(it) if it.fixed.is_none() => Resizable::Yes,
            Some(_) | None => Resizable::No,
        };
        let (has, recorded) = (has_by_object(kept), recorded(kept));
        let sure = container.map_or(sure, VmContainer::sure);
        let own = Self {
            requests: container.map_or(requests, |container| container.effective),
            allotted: Allotted { sure, resizable, has, recorded },
            most: sure.max(vm.bounds.min),
        };
        let asked = requests.max(vm.bounds.min).max(has);
        let asked = Resources { mem: asked.mem.round_up(vm.memory_slot), ..asked };
        let more = match counted {
            // It is placed where it had more.
            Counted::AsPlaced(size) if is_object && !asked.covers(size) => {
                size.max(size_of(recorded))
            }
            _ if is_object => size_of(recorded),
            // What its pod requests beside it counts apart.
            Counted::AsPlaced(size) if asked.covers(size) => own.starts_with(vm.bounds.min),
            Counted::AtMost(size) | Counted::AsPlaced(size) => size.max(has),
        };
        Self { most: own.most.max(more), ..own }
    }

    /// What a VM of another object has from its first moment.
    fn starts_with(&self, min: Resources) -> Resources {
        self.requests.max(min).max(self.allotted.has)
    }
}

/// What the VM has by an object that is not its pod.
fn has_by_object(kept: Option<Kept>) -> Resources {
    kept.map(|kept| kept.has).unwrap_or_default()
}

fn recorded(kept: Option<Kept>) -> Option<Ceiling> {
    kept.and_then(|kept| kept.shown)
}

/// Of no ceiling this is nothing.
fn size_of(ceiling: Option<Ceiling>) -> Resources {
    ceiling.map(|ceiling| ceiling.size).unwrap_or_default()
}
