//! VMs whose pods belong to objects of another project: what these objects say, and which pods run them.
//!
//! The ceiling of such a VM is recorded on its object, since the object's controller has its way with the annotations of the
//! pod. One pod at a time runs the VM, the one that the object names; where the VM moves, another pod of it comes into
//! being, which counts with the VM's maximum and whose ceiling nobody records. As long as an object is not known, its VM's
//! agent is permitted nothing beyond what the VM counts with.

use crate::cluster::Node;
use crate::pods::known::{Known, OnObject, Record};
use crate::pods::{Freed, Pods};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_object::VmObject;
use windlass_protocol::{Resources, VmName};

/// The objects of VMs, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    are_followed: bool,
    known: BTreeMap<VmName, VmObject>,
    /// The pods of each VM that has an object of its own, whether it is known or not.
    pods: BTreeMap<VmName, BTreeSet<Arc<VmName>>>,
}

/// The object that the ceiling of a VM is recorded on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeilingOn {
    /// The VM's pod, with this uid.
    Pod(VmName, String),
    /// The VM's own object, with this uid.
    Object(VmName, String),
}

// === impl CeilingOn ===

impl CeilingOn {
    /// The uid of the object.
    pub fn uid(&self) -> &str {
        match self {
            Self::Pod(_, uid) | Self::Object(_, uid) => uid,
        }
    }
}

// === impl Objects ===

impl Objects {
    /// None is known. Where they are followed, ceilings are recorded on them.
    pub(crate) fn followed(are_followed: bool) -> Self {
        Self { are_followed, ..Self::default() }
    }

    /// What is known of a pod learns what the object of its VM says.
    pub(crate) fn show_to(&self, pod: &VmName, known: &mut Known) {
        let Some(object) = known.other_object().filter(|_| self.are_followed) else { return };
        let object = self.known.get(object).filter(|it| it.pod.as_ref() == Some(&pod.name));
        let on_object = object.map(|VmObject { uid, has, ceiling, .. }| {
            Box::new(OnObject { uid: uid.clone(), has: *has, ceiling: *ceiling })
        });
        known.record = Record::OnObject(on_object);
    }

    /// A pod is known from here on as `next`, and was as `last`.
    pub(crate) fn note(&mut self, pod: &Arc<VmName>, last: Option<&Known>, next: Option<&Known>) {
        let before = last.and_then(Known::other_object);
        let after = next.and_then(Known::other_object);
        if before == after {
            return;
        }
        if let Some(object) = before
            && let Some(pods) = self.pods.get_mut(object)
        {
            pods.remove(pod);
            if pods.is_empty() {
                self.pods.remove(object);
            }
        }
        if let Some(object) = after {
            self.pods.entry(object.clone()).or_default().insert(Arc::clone(pod));
        }
    }
}

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// These are the VMs' objects from here on, whatever the watch said before.
    pub fn objects_listed(&mut self, all: Vec<VmObject>) -> Freed {
        let mut freed = Freed::default();
        let listed: BTreeSet<VmName> = all.iter().map(|object| object.name.clone()).collect();
        all.into_iter().for_each(|object| freed.and(self.object_seen(object)));
        let gone = self.objects.known.keys().filter(|name| !listed.contains(*name)).cloned();
        for name in gone.collect::<Vec<_>>() {
            freed.and(self.put_object(&name, None));
        }
        freed
    }

    /// The watch shows the object of a VM.
    pub fn object_seen(&mut self, object: VmObject) -> Freed {
        let name = object.name.clone();
        self.put_object(&name, Some(object))
    }

    /// The watch shows that the object of a VM is gone. Its pod, while there is one, counts as before an object was seen.
    pub fn object_gone(&mut self, name: &VmName, uid: &str) -> Freed {
        match self.objects.known.get(name) {
            Some(known) if known.uid == uid => self.put_object(name, None),
            Some(_) | None => Freed::default(),
        }
    }

    /// The revision that is known of a VM's object.
    pub fn object_revision(&self, name: &VmName) -> Option<&str> {
        Some(&self.objects.known.get(name)?.revision)
    }

    /// How many objects of VMs are known.
    pub fn objects(&self) -> usize {
        self.objects.known.len()
    }

    /// The object that the ceiling of this VM is recorded on, if that is known.
    pub(crate) fn ceiling_on(&self, vm: &VmName) -> Option<CeilingOn> {
        let known = self.pods.get(vm)?;
        match (&known.record, known.other_object()) {
            (Record::OnPod, _) => Some(CeilingOn::Pod(vm.clone(), known.uid.clone())),
            (Record::OnObject(Some(on)), Some(object)) => {
                Some(CeilingOn::Object(object.clone(), on.uid.clone()))
            }
            (Record::OnObject(_) | Record::Nowhere, _) => None,
        }
    }

    /// What the VM of a pod has from its first moment by its object.
    pub(crate) fn has_by_object(&self, pod: &Pod) -> Resources {
        let object = pod.vm.as_ref().and_then(|vm| self.objects.known.get(&vm.object));
        object
            .filter(|it| it.pod.as_ref() == Some(&pod.name.name))
            .map(|it| it.has)
            .unwrap_or_default()
    }

    fn put_object(&mut self, name: &VmName, next: Option<VmObject>) -> Freed {
        if self.objects.known.get(name) == next.as_ref() {
            return Freed::default();
        }
        match next {
            Some(next) => drop(self.objects.known.insert(name.clone(), next)),
            None => drop(self.objects.known.remove(name)),
        }
        let mut freed = Freed::default();
        for pod in self.objects.pods.get(name).cloned().unwrap_or_default() {
            let known = self.pods.get(&pod).cloned();
            freed.and(self.put(&pod, known));
        }
        freed
    }
}
