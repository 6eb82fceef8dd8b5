//! VMs' own objects, as the API server tells of them: what the books of their pods' nodes learn of it.

use crate::cluster::Node;
use crate::pods::objects::CeilingOn;
use crate::pods::record::Record;
use crate::pods::{Freed, Pods};
use std::collections::BTreeSet;
use windlass_protocol::pod::{Ceiling, PodVm};
use windlass_protocol::vm_object::VmObject;
use windlass_protocol::{Resources, VmName};

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// These are the VMs' objects from here on, whatever the watch said before.
    pub fn objects_listed(&mut self, all: Vec<VmObject>) -> Freed {
        let mut freed = Freed::default();
        let listed: BTreeSet<VmName> = all.iter().map(|object| object.name.clone()).collect();
        for object in all {
            freed.and(self.put_object(&object.name.clone(), Some(object)));
        }
        let gone = self.objects.known.keys().filter(|name| !listed.contains(*name)).cloned();
        for name in gone.collect::<Vec<_>>() {
            freed.and(self.put_object(&name, None));
        }
        self.objects.listed();
        freed
    }

    /// The watch shows the object of a VM.
    pub fn object_seen(&mut self, object: VmObject) -> Freed {
        if self.objects.is_late(&object) {
            return Freed::default();
        }
        self.put_object(&object.name.clone(), Some(object))
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

    /// What the VM of a pod may have from its first moment: on another node, or by its object. An agent may write as much into the
    /// object as the ceiling there allows, and what it wrote is known later than the pod. Where neither is known yet, the object
    /// may ask for as much as the VM can grow to: the pods of a cluster and the objects of VMs are told apart.
    pub(crate) fn comes_with(&self, pod: &VmName, vm: Option<&PodVm>) -> Resources {
        let elsewhere = self.arrives_with(pod, vm);
        let Some(vm) = vm.filter(|vm| vm.object != *pod) else {
            return elsewhere;
        };
        match self.objects.naming(pod, &vm.object) {
            Some(object) => {
                // An earlier pod of its name may have the newest ceiling.
                let earlier = self.recorded_of(pod).filter(|(of, _)| **of == vm.object);
                let earlier = earlier.map(|(_, ceiling)| ceiling);
                let ceilings = self.objects.ceiling(&vm.object).into_iter().chain(earlier);
                ceilings.map(|it| it.size).fold(object.has.max(elsewhere), Resources::max)
            }
            None if self.objects.are_followed && elsewhere == Resources::ZERO => vm.bounds.max,
            None => elsewhere,
        }
    }

    /// The ceiling of a pod's VM by the books, and the object that it is on, which is not the pod.
    pub(crate) fn recorded_of(&self, pod: &VmName) -> Option<(&VmName, Ceiling)> {
        let object = self.pods.get(pod)?.other_object()?;
        Some((object, self.books_of(pod)?.with_books(|books| books.recorded(pod))?))
    }

    /// The pod leaves: the newest ceiling of its VM may be known from its books alone.
    pub(super) fn remember_ceiling(&mut self, pod: &VmName) {
        if let Some((object, ceiling)) = self.recorded_of(pod) {
            self.objects.confirm(&object.clone(), ceiling);
        }
    }

    fn put_object(&mut self, name: &VmName, next: Option<VmObject>) -> Freed {
        if self.objects.known.get(name) == next.as_ref() {
            return Freed::default();
        }
        self.objects.put(name, next);
        let mut freed = Freed::default();
        for pod in self.objects.pods.get(name).cloned().unwrap_or_default() {
            let known = self.pods.get(&pod).cloned();
            freed.and(self.put(&pod, known));
            freed.and(self.asks_anew(&pod));
        }
        freed
    }
}
