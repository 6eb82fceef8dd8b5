//! The objects by which VMs move, as the API server has them. One belongs to the object of its VM, and goes with it.

use crate::cluster::api::Api;
use crate::cluster::call::{Answer, Told};
use std::rc::Rc;
use windlass_plugin_core::pods::{Migration, Move};
use windlass_protocol::VmName;

// === impl Api ===

impl Api {
    /// A migration is made, or says something else.
    pub(crate) fn put_migration(&mut self, migration: Migration) {
        let migration = Rc::new(migration);
        self.migrations.insert(migration.name.clone(), Rc::clone(&migration));
        self.note(|_| Told::Migration(migration));
    }

    /// The migrations that are there.
    pub(crate) fn migrations(&self) -> Vec<Migration> {
        self.migrations.values().map(|it| Migration::clone(it)).collect()
    }

    /// The migration of this VM that is not over, if any.
    pub(crate) fn migration_of(&self, vm: &VmName) -> Option<&Rc<Migration>> {
        self.migrations.values().find(|it| it.vm == *vm && !it.is_over)
    }

    /// Whether a migration is there.
    pub(crate) fn has_migration(&self, migration: &Migration) -> bool {
        self.migrations.get(&migration.name).is_some_and(|it| it.uid == migration.uid)
    }

    /// A plugin asks for one, by the name of its VM.
    pub(crate) fn begin_migration(&mut self, goes: &Move) -> Answer {
        let name = goes.migration();
        if self.migrations.contains_key(&name) {
            return Answer::Status(409);
        }
        let (vm, uid) = (goes.vm.clone(), format!("migration {}", self.revision));
        self.put_migration(Migration {
            name: name.clone(),
            uid,
            vm,
            is_ours: true,
            is_over: false,
        });
        let made = self.migrations.get(&name).cloned();
        if self.vm(&goes.vm, &goes.object).is_none() {
            self.remove_migration(&name);
        }
        Answer::Migration(made)
    }

    pub(crate) fn end_migration(&mut self, name: &VmName, uid: &str) -> Answer {
        match self.migrations.get(name) {
            None => Answer::Status(404),
            Some(it) if it.uid != uid => Answer::Status(409),
            Some(_) => {
                self.remove_migration(name);
                Answer::Done
            }
        }
    }

    /// The object of a VM is gone.
    pub(crate) fn remove_migrations_of(&mut self, vm: &VmName) {
        let of_vm = self.migrations.values().filter(|it| it.vm == *vm);
        for name in of_vm.map(|it| it.name.clone()).collect::<Vec<_>>() {
            self.remove_migration(&name);
        }
    }

    fn remove_migration(&mut self, name: &VmName) {
        if let Some(gone) = self.migrations.remove(name) {
            self.note(|_| Told::MigrationGone(gone));
        }
    }
}
