//! Where the ceiling of a pod's VM is recorded, and what is recorded there.

use crate::ceilings::Kept;
use windlass_protocol::Resources;
use windlass_protocol::pod::{Ceiling, Pod, PodVm};

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

// === impl Record ===

impl Record {
    /// Of a pod of which nothing else is known.
    pub(crate) fn of(pod: &Pod) -> Self {
        let is_object = pod.vm.as_ref().is_some_and(|vm| vm.object == pod.name);
        // The controller of another object has its way with the pod's annotations.
        if is_object { Self::OnPod } else { Self::Nowhere }
    }

    /// The ceiling that counts. A ceiling elsewhere than where it belongs is no word of a plugin.
    pub(crate) fn ceiling(&self, vm: &PodVm) -> Option<Ceiling> {
        match self {
            Self::Nowhere | Self::OnObject(None) => None,
            Self::OnPod => vm.ceiling,
            Self::OnObject(Some(object)) => object.ceiling,
        }
    }

    /// What is recorded of the VM, where that is followed. Its own container has `alone` for sure.
    pub(crate) fn kept(&self, vm: &PodVm, alone: Resources) -> Option<Kept> {
        match self {
            Self::Nowhere => None,
            Self::OnPod | Self::OnObject(_) => {
                let (max, shown, has) = (vm.bounds.max, self.ceiling(vm), self.has());
                Some(Kept { max, shown, has, alone })
            }
        }
    }

    /// The uid of the VM's object, if that is another than its pod, and known.
    pub(crate) fn object_uid(&self) -> Option<&str> {
        match self {
            Self::Nowhere | Self::OnPod | Self::OnObject(None) => None,
            Self::OnObject(Some(object)) => Some(&object.uid),
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
