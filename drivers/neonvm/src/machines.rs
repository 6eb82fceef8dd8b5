//! The objects of an agent's VMs, as a watch of the API server last showed them.

use crate::sizes::Change;
use crate::write;
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use windlass_kit_kubernetes::objects::WholeMachineObject;
use windlass_kit_kubernetes::{Failure, Followed, Told, answered};
use windlass_protocol::VmName;
use windlass_protocol::vm_object::Machine;

/// The objects of an agent's VMs. Clones share them.
#[derive(Clone)]
pub struct Machines(Arc<Inner>);

struct Inner {
    client: Client,
    followed: Followed,
    known: Mutex<BTreeMap<VmName, watch::Sender<Arc<Machine>>>>,
    /// Told when another object is known.
    more: Notify,
}

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

    /// The watch has told this. Which VMs it is about.
    pub fn told(&self, told: Told<Machine>) -> Vec<VmName> {
        let mut known = self.known();
        match told {
            Told::All(machines, _) => {
                let there: BTreeMap<VmName, Machine> =
                    machines.into_iter().map(|machine| (machine.name.clone(), machine)).collect();
                let mut names: Vec<VmName> = known.keys().cloned().collect();
                known.retain(|name, _| there.contains_key(name));
                names.retain(|name| !there.contains_key(name));
                for (name, machine) in there {
                    self.put(&mut known, machine);
                    names.push(name);
                }
                names
            }
            Told::Seen(machine) => {
                let name = machine.name.clone();
                self.put(&mut known, machine);
                vec![name]
            }
            Told::Gone(machine) => {
                let is_it =
                    known.get(&machine.name).is_some_and(|it| it.borrow().uid == machine.uid);
                if is_it {
                    known.remove(&machine.name);
                }
                vec![machine.name]
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
        answered(machines.get(&name.name)).await.map(WholeMachineObject::into_machine)
    }

    /// Changes what the spec of a VM asks for, if it still is as it was looked at; the generation after that.
    pub(crate) async fn write(&self, machine: &Machine, change: Change) -> Result<i64, Failure> {
        write::write(&self.0.client, machine, change).await
    }

    fn put(&self, known: &mut BTreeMap<VmName, watch::Sender<Arc<Machine>>>, machine: Machine) {
        match known.get(&machine.name) {
            Some(kept) if kept.borrow().uid == machine.uid => {
                kept.send_replace(Arc::new(machine));
            }
            // Another object of the same name is another VM.
            _ => {
                known.insert(machine.name.clone(), watch::Sender::new(Arc::new(machine)));
                self.0.more.notify_waiters();
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<VmName, watch::Sender<Arc<Machine>>>> {
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
