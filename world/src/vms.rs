//! The VMs of a world: by number for what happens, by name for people.

use crate::vm::Vm;
use std::collections::BTreeMap;
use windlass_protocol::VmName;

/// The number of a VM. One that comes again under its name has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(usize);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Vms {
    ids: BTreeMap<VmName, Id>,
    slots: Vec<Option<Vm>>,
}

// === impl Vms ===

impl Vms {
    /// The number of the VM of this name, if there is one.
    pub(crate) fn id(&self, name: &VmName) -> Option<Id> {
        self.ids.get(name).copied().filter(|id| self.get(*id).is_some())
    }

    pub(crate) fn insert(&mut self, vm: Vm) -> Id {
        let next = Id(self.slots.len());
        let id = *self.ids.entry(vm.info.name.clone()).or_insert(next);
        if id == next {
            self.slots.push(None);
        }
        self.slots[id.0] = Some(vm);
        id
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<Vm> {
        self.slots.get_mut(id.0)?.take()
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Vm> {
        self.slots.get(id.0)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Vm> {
        self.slots.get_mut(id.0)?.as_mut()
    }

    pub(crate) fn of(&self, name: &VmName) -> Option<&Vm> {
        self.get(self.id(name)?)
    }

    /// The name of the VM of this number, for people; the VM may have ended.
    pub(crate) fn name_of(&self, id: Id) -> VmName {
        self.get(id).map_or_else(|| VmName::on_host("gone"), |vm| vm.info.name.clone())
    }

    /// By name, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &Vm)> {
        self.ids.values().filter_map(|id| Some((*id, self.get(*id)?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Vm> {
        self.slots.iter_mut().flatten()
    }
}
