//! NeonVM's controller as an agent sees it: it carries out what the spec of an object asks for, and shows it in the status.
//!
//! It follows a watch, so that what it adds to a time is one write of a status. Of each VM the last state counts: the
//! states of one VM are carried out one after another, those of several at the same time.

use anyhow::Result;
use futures_util::StreamExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use windlass_control_plane::Amounts;
use windlass_control_plane::neonvm::{asked, kind};

/// VMs whose sizes are carried out at the same time.
const AT_ONCE: usize = 16;
/// Between two tries of what did not come about.
const AGAIN: Duration = Duration::from_millis(100);

/// What runs VMs.
pub(super) trait Hypervisor: Send + Sync + 'static {
    /// Brings the VM of an object of this name towards this size; what it has then.
    fn resize(&self, vm: &str, to: Amounts) -> impl Future<Output = Result<Amounts>> + Send;
}

/// A controller of a namespace's VMs. It ends with this value.
pub(super) struct Controller {
    _work: JoinSet<()>,
}

struct Work<H> {
    machines: Api<DynamicObject>,
    hypervisor: H,
    /// VMs that are worked on, and the states of them that came meanwhile.
    latest: Mutex<BTreeMap<String, Option<DynamicObject>>>,
    turns: Semaphore,
}

// === impl Controller ===

impl Controller {
    pub(super) fn start(client: &Client, namespace: &str, hypervisor: impl Hypervisor) -> Self {
        let machines = Api::namespaced_with(client.clone(), namespace, &kind());
        let (latest, turns) = (Mutex::default(), Semaphore::new(AT_ONCE));
        let work = Arc::new(Work { machines, hypervisor, latest, turns });
        Self { _work: JoinSet::from_iter([follow(work)]) }
    }
}

/// What an object shows of a VM that runs and has this size.
pub(super) fn status(has: Amounts) -> serde_json::Value {
    json!({
        "phase": "Running",
        "cpus": format!("{}m", has.cpu),
        "memorySize": has.memory.to_string(),
    })
}

async fn follow<H: Hypervisor>(work: Arc<Work<H>>) {
    let events = watcher(work.machines.clone(), watcher::Config::default());
    let mut events = pin!(events.default_backoff().applied_objects());
    let mut busy = JoinSet::new();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(machine)) if work.came(&machine) => {
                    busy.spawn(Arc::clone(&work).work(machine.name_any()));
                }
                // A watch that breaks begins anew.
                Some(_) => {}
                None => return,
            },
            Some(_) = busy.join_next() => {}
        }
    }
}

// === impl Work ===

impl<H: Hypervisor> Work<H> {
    /// Keeps a state; whether nothing works on the VM.
    fn came(&self, machine: &DynamicObject) -> bool {
        self.latest().insert(machine.name_any(), Some(machine.clone())).is_none()
    }

    /// The last state of a VM, if it was not worked on.
    fn take(&self, name: &str) -> Option<DynamicObject> {
        let mut latest = self.latest();
        let machine = latest.get_mut(name).and_then(Option::take);
        if machine.is_none() {
            latest.remove(name);
        }
        machine
    }

    async fn work(self: Arc<Self>, name: String) {
        while let Some(machine) = self.take(&name) {
            let _turn = self.turns.acquire().await;
            while self.carry_out(&name, &machine).await.is_err() {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    async fn carry_out(&self, name: &str, machine: &DynamicObject) -> Result<()> {
        let has = self.hypervisor.resize(name, asked(&machine.data["spec"]["guest"])).await?;
        let next = status(has);
        let shows = |key: &str| machine.data["status"][key] == next[key];
        if !["phase", "cpus", "memorySize"].into_iter().all(shows) {
            let patch = Patch::Merge(json!({"status": next}));
            let shown = self.machines.patch_status(name, &PatchParams::default(), &patch).await;
            match shown {
                // It is gone.
                Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
                shown => drop(shown?),
            }
        }
        Ok(())
    }

    fn latest(&self) -> MutexGuard<'_, BTreeMap<String, Option<DynamicObject>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
