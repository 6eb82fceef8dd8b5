//! Which VMs are moving: what the API server's objects say of migrations, and what the books are told.
//!
//! While a VM moves both of its pods count, and neither grows. A pod is placed for what its VM has on another node, whether a
//! migration of the VM is known yet or not: the VM does not grow there either, as long as both take room.

use crate::cluster::Node;
use crate::pods::Pods;
use crate::pods::known::Known;
use crate::pods::migration::{Migration, Move};
use std::collections::BTreeSet;
use windlass_protocol::{Moment, VmName};

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// These are the migrations from here on, whatever a watch said before.
    pub fn migrations_listed(&mut self, all: Vec<Migration>, now: Moment) {
        let listed: BTreeSet<&str> = all.iter().map(|migration| migration.uid.as_str()).collect();
        let known = self.migrations.known.values().map(|(it, _)| it);
        let gone: Vec<_> = known.filter(|it| !listed.contains(it.uid.as_str())).cloned().collect();
        gone.iter().for_each(|it| self.migration_gone(&it.name, &it.uid, now));
        all.into_iter().for_each(|migration| self.migration_seen(migration, now));
        self.migrations.is_listed = true;
    }

    /// The watch, or the answer to its creation, shows a migration.
    pub fn migration_seen(&mut self, migration: Migration, now: Moment) {
        let (vm, terms) = (migration.vm.clone(), self.pools.migration);
        self.migrations.see(migration, terms, now);
        self.mark_vm(&vm);
    }

    /// The watch shows that a migration is gone.
    pub fn migration_gone(&mut self, name: &VmName, uid: &str, now: Moment) {
        let known = self.migrations.known.get(name).filter(|(it, _)| it.uid == uid);
        let vm = known.map(|(migration, _)| migration.vm.clone());
        self.migrations.forget(name, uid, self.pools.migration, now);
        if let Some(vm) = vm {
            self.mark_vm(&vm);
        }
    }

    /// A migration is asked for now: the VM counts as moving.
    pub fn migration_sent(&mut self, goes: &Move) {
        if !self.migrations.is_moving(&goes.vm) {
            self.migrations.asked.insert(goes.vm.clone(), goes.clone());
            self.mark_vm(&goes.vm);
        }
    }

    /// The API server refuses a migration that was asked for. The VM stays, and rests.
    pub fn migration_refused(&mut self, goes: &Move, now: Moment) {
        if self.migrations.asked.remove(&goes.vm).is_some() {
            self.migrations.rest(goes.vm.clone(), self.pools.migration, now);
            self.mark_vm(&goes.vm);
        }
    }

    /// How many VMs move.
    pub fn moving(&self) -> usize {
        self.migrations.moving().len()
    }

    /// Tells the books of each pod of a VM whether the VM moves.
    fn mark_vm(&mut self, vm: &VmName) {
        let is_moving = self.migrations.is_moving(vm);
        let known = self.migrations.pods.remove(vm);
        let pods = known.unwrap_or_else(|| {
            let of_vm = |known: &Known| known.vm().is_some_and(|it| it.object == *vm);
            let pods = self.pods.iter().filter(|(_, known)| of_vm(known));
            pods.map(|(name, _)| (**name).clone()).collect()
        });
        pods.iter().for_each(|pod| self.tell_books(pod, is_moving));
        if is_moving {
            self.migrations.pods.insert(vm.clone(), pods);
        }
    }

    /// The same of a pod that came, changed or left, and whether it holds the other pods of its VM.
    pub(crate) fn mark_pod(&mut self, pod: &VmName) {
        if !self.migrations.pods.is_empty() {
            self.mark_moving(pod);
        }
        if let Some(object) = self.pods.get(pod).and_then(Known::other_object) {
            self.mark_pods_of(object);
        }
    }

    fn mark_moving(&mut self, pod: &VmName) {
        let vm = self.pods.get(pod).and_then(Known::vm).map(|vm| vm.object.clone());
        for pods in self.migrations.pods.values_mut() {
            pods.remove(pod);
        }
        let pods = vm.and_then(|vm| self.migrations.pods.get_mut(&vm));
        if pods.map(|pods| pods.insert(pod.clone())).is_some() {
            self.tell_books(pod, true);
        }
    }

    /// A pod of the VM with this object came, changed or left.
    pub(crate) fn mark_pods_of(&self, object: &VmName) {
        if !self.migrations.is_moving(object) {
            let pods = self.objects.pods.get(object).into_iter().flatten();
            pods.for_each(|pod| self.tell_books(pod, false));
        }
    }

    /// Whether there is another pod of the VM of this one, which is there to stay and takes room or waits for it.
    fn has_another(&self, pod: &VmName, takes_room: bool) -> bool {
        let object = self.pods.get(pod).and_then(Known::other_object);
        let pods = object.and_then(|object| self.objects.pods.get(object)).into_iter().flatten();
        let others = pods.filter(|other| ***other != *pod).filter_map(|other| self.pods.get(other));
        let mut others = others.filter(|other| !other.is_terminating() && !other.has_ended);
        others.any(|other| other.place().is_some() == takes_room)
    }

    fn tell_books(&self, pod: &VmName, is_moving: bool) {
        if let Some(node) = self.books_of(pod) {
            let [is_held, is_awaited] = [true, false].map(|takes| self.has_another(pod, takes));
            node.with_books(|books| {
                books.set_moving(pod, is_moving);
                books.set_held(pod, is_held);
                books.set_awaited(pod, is_awaited);
            });
        }
    }

    /// What is held of the node of a VM's pod, also while the node's object is gone.
    pub(super) fn books_of(&self, pod: &VmName) -> Option<&N> {
        let known = self.pods.get(pod).filter(|known| known.is_vm())?;
        self.nodes.get(known.place()?)?.seen.as_ref().map(|seen| &seen.held)
    }
}
