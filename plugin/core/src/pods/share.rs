//! What a pod takes of its node, and what of that is its VM's.

use crate::allotment::{Allotted, Resizable};
use crate::ceilings::Kept;
use crate::pods::record::Record;
use windlass_protocol::pod::{Allocation, Fixed, Pod, PodVm, VmContainer};
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

// === impl Share ===

impl Share {
    /// What a pod takes that nothing else is known of.
    pub(crate) fn of(pod: &Pod) -> Self {
        let requests = pod.requests;
        let Some(vm) = &pod.vm else { return Self::Other(requests) };
        let record = Record::of(pod);
        let ceiling = record.ceiling(vm);
        let most = ceiling.map_or(vm.bounds.max, |ceiling| ceiling.size);
        Self::of_vm(vm, requests, pod.allocation.as_deref(), most, &record)
    }

    /// Before its kubelet has said that the VM's pod is admitted, the requests of its spec are as good as its own: they are
    /// reserved for it, and it is admitted with them. The VM counts with `most` until its agent speaks.
    pub(crate) fn of_vm(
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
    pub(crate) fn resized(mut self, to: Option<Resources>, is_terminating: bool) -> Self {
        if let Self::Vm { own: Own { allotted, .. }, .. } = &mut self {
            allotted.sure = to.map_or(allotted.sure, |to| allotted.sure.min(to));
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
    pub(crate) fn most(&self) -> Resources {
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
