//! The objects of an agent's VMs, as a watch of the API server last showed them.

use crate::write;
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use windlass_drivers_neonvm_core::Change;
use windlass_kit_kubernetes::objects::{Read, WholeMachineObject};
use windlass_kit_kubernetes::{Failure, Followed, Told, answered};
use windlass_protocol::VmName;
use windlass_protocol::vm_object::Machine;

/// The objects of an agent's VMs. Clones share them.
#[derive(Clone)]
pub struct Machines(Arc<Inner>);

struct Inner {
    client: Client,
    followed: Followed,
    known: Mutex<Known>,
    /// Told when another object is known.
    more: Notify,
}

type Known = BTreeMap<VmName, watch::Sender<Arc<Machine>>>;

/// An object that is known, and what becomes of it. Clones are of the same object.
#[derive(Clone, Debug)]
pub(crate) struct Found(watch::Receiver<Arc<Machine>>);

// === impl Machines ===

impl Machines {
    /// None is known until the watch [tells](Machines::told) of them. `followed`: how far that watch has come.
    pub fn new(client: Client, followed: Followed) -> Self {
        let (known, more) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { client, followed, known, more }))
    }

    /// The watch has told this; what it shows.
    pub fn told(&self, told: Told<Machine>) -> Vec<Arc<Machine>> {
        let mut known = self.known();
        match told {
            Told::All(machines, _) => {
                let there: BTreeSet<&VmName> =
                    machines.iter().map(|machine| &machine.name).collect();
                known.retain(|name, _| there.contains(name));
                machines.into_iter().map(|machine| self.put(&mut known, machine)).collect()
            }
            Told::Seen(machine) => vec![self.put(&mut known, machine)],
            Told::Gone(machine) => {
                let is_it =
                    known.get(&machine.name).is_some_and(|it| it.borrow().uid == machine.uid);
                if is_it {
                    known.remove(&machine.name);
                }
                Vec::new()
            }
        }
    }

    /// An object, if it is known.
    pub fn get(&self, name: &VmName) -> Option<Arc<Machine>> {
        self.known().get(name).map(|known| known.borrow().clone())
    }

    /// Waits until all are listed, and the watch has not failed since.
    pub(crate) async fn are_followed(&self) {
        self.0.followed.listed().await;
    }

    /// An object, once it is known.
    pub(crate) async fn find(&self, name: &VmName) -> Found {
        loop {
            let more = self.0.more.notified();
            if let Some(known) = self.known().get(name) {
                return Found(known.subscribe());
            }
            more.await;
        }
    }

    /// An object, as the API server has it.
    ///
    /// # Errors
    /// The API server answers with no success, or not at all.
    pub async fn read(&self, name: &VmName) -> Result<Machine, Failure> {
        let machines: Api<WholeMachineObject> =
            Api::namespaced(self.0.client.clone(), &name.namespace);
        answered(machines.get(&name.name)).await.map(Read::kept)
    }

    /// Changes what the spec of a VM asks for, if it still is as it was looked at; the generation after that.
    pub(crate) async fn write(&self, machine: &Machine, change: Change) -> Result<i64, Failure> {
        write::write(&self.0.client, machine, change).await
    }

    fn put(&self, known: &mut Known, machine: Machine) -> Arc<Machine> {
        let machine = Arc::new(machine);
        match known.get(&machine.name) {
            Some(kept) if kept.borrow().uid == machine.uid => {
                kept.send_replace(Arc::clone(&machine));
            }
            // Another object of the same name is another VM.
            _ => {
                known.insert(machine.name.clone(), watch::Sender::new(Arc::clone(&machine)));
                self.0.more.notify_waiters();
            }
        }
        machine
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Machines").field(&self.known().len()).finish()
    }
}

// === impl Found ===

impl Found {
    /// As it was last shown.
    pub(crate) fn get(&self) -> Arc<Machine> {
        self.0.borrow().clone()
    }

    /// Waits until another state of it is shown. `false`: it is known no more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }

    /// Its first state for which this holds. `None`: it is known no more.
    pub(crate) async fn wait_for(
        &mut self,
        holds: impl Fn(&Machine) -> bool,
    ) -> Option<Arc<Machine>> {
        // A state that was shown before the object was known no more says nothing.
        self.0.has_changed().ok()?;
        let found = self.0.wait_for(|machine| holds(machine)).await.ok()?;
        Some(found.clone())
    }
}
