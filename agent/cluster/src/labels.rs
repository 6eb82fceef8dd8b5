//! Labels the objects of VMs with the node that runs them, so that the agent of that node can watch them alone.
//!
//! An API server chooses objects of NeonVM by no field of their status. A VM whose object the watch does not show is read; if the
//! object says that a pod of this node runs it, it is given the label, and the watch shows it. So the label is written once for
//! each time that a VM comes to a node. While a VM moves, the pod that it moves to is asked about again and again, since
//! nothing tells when the move is over.

use futures_util::StreamExt;
use futures_util::stream::iter;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use windlass_agent_core::declared::is_run_by;
use windlass_drivers_neonvm::Machines;
use windlass_kit::backoff::Backoff;
use windlass_kit::watchdog::{Pulse, TURN};
use windlass_kit_kubernetes::objects::WholeMachineObject;
use windlass_kit_kubernetes::{Failure, answered};
use windlass_protocol::VmName;
use windlass_protocol::vm_object::NODE;

/// After something came, until the objects are looked for: what comes at once is looked for at once.
const GATHERED: Duration = Duration::from_millis(50);

/// Objects that are read or labelled at the same time.
const AT_ONCE: usize = 16;

/// Between looks for one object that is not known.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(2) };

/// What the labelling needs.
pub struct Labels {
    /// How the API server is reached.
    pub client: Client,
    /// The node.
    pub node: String,
    /// The label's value.
    pub label: String,
    /// The objects that the watch shows.
    pub machines: Machines,
    /// Whether pods and objects were listed: before that nothing is known to be missing.
    pub is_listed: Box<dyn Fn() -> bool + Send + Sync>,
    /// Objects that the watch does not show, and the pods that run their VMs.
    pub unknown: Box<dyn Fn() -> Vec<(VmName, String)> + Send + Sync>,
    /// Told when there may be more of them.
    pub pods_came: Arc<Notify>,
    /// Shows that it is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// What is known of an object that the watch does not show.
#[derive(Clone, Copy)]
struct Missing {
    looks: u32,
    next: Instant,
}

/// Labels objects until told to stop.
///
/// # Errors
/// None.
pub async fn run(labels: Labels) -> Result<(), Infallible> {
    let mut missing: BTreeMap<(VmName, String), Missing> = BTreeMap::new();
    let mut is_failing = false;
    loop {
        let next = missing.values().map(|it| it.next).min();
        let wait = next.map_or(TURN, |next| next.saturating_duration_since(Instant::now()));
        labels.pulse.turn("pods whose VMs are not known");
        tokio::select! {
            () = labels.stop.cancelled() => return Ok(()),
            () = labels.pods_came.notified() => tokio::time::sleep(GATHERED).await,
            () = tokio::time::sleep(wait.min(TURN)) => {}
        }
        if !(labels.is_listed)() {
            // What is missing is not known before that.
            missing.clear();
            continue;
        }
        let unknown: BTreeSet<_> = (labels.unknown)().into_iter().collect();
        missing.retain(|known, _| unknown.contains(known));
        let now = Instant::now();
        let is_due = |it: &(VmName, String)| missing.get(it).is_none_or(|it| it.next <= now);
        let due: Vec<_> = unknown.into_iter().filter(is_due).collect();
        let mut looked = iter(due).map(|it| labels.look(it)).buffer_unordered(AT_ONCE);
        let mut failed = None;
        while let Some((it, outcome)) = looked.next().await {
            labels.pulse.turn("the API server, for VMs that are not known");
            if let Err(why) = outcome {
                failed.get_or_insert((it.0.clone(), why));
            }
            let looks = missing.get(&it).map_or(1, |it| it.looks.saturating_add(1));
            let wait = BACKOFF.wait(looks, looks.into());
            missing.insert(it, Missing { looks, next: Instant::now() + wait });
        }
        match (failed, is_failing) {
            (Some((vm, why)), false) => {
                is_failing = true;
                warn!(%vm, why, "the object of a VM is not labelled; it is tried again");
            }
            (None, true) => is_failing = false,
            (Some(_), true) | (None, false) => {}
        }
    }
}

// === impl Labels ===

impl Labels {
    /// Reads an object, and labels it if this pod runs its VM.
    async fn look(&self, it: (VmName, String)) -> ((VmName, String), Result<(), String>) {
        let (object, pod) = &it;
        let outcome = match self.machines.read(object).await {
            Ok(machine) if is_run_by(&machine, pod, &self.node) => {
                debug!(vm = %object, pod, "labelled");
                self.label(object, &machine.uid).await
            }
            // It is on its way here, or has left. The API server lets an agent change no VM whose status names another node.
            Ok(_) | Err(Failure::Gone(_)) => Ok(()),
            Err(failure) => Err(failure.to_string()),
        };
        (it, outcome)
    }

    async fn label(&self, object: &VmName, uid: &str) -> Result<(), String> {
        let machines: Api<WholeMachineObject> =
            Api::namespaced(self.client.clone(), &object.namespace);
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "labels": {NODE: self.label}}}));
        match answered(machines.patch(&object.name, &PatchParams::default(), &patch)).await {
            Ok(_) | Err(Failure::Gone(_) | Failure::Conflict(_)) => Ok(()),
            Err(failure) => Err(failure.to_string()),
        }
    }
}
