//! Makes and deletes the objects by which NeonVM moves VMs to other nodes, as the books plan it.
//!
//! The books say which VM is to leave its node; NeonVM's controller makes the pod that it moves to, the scheduler places that
//! through the extender, and the watch of the objects shows what comes of it. A migration is named after its VM, so that it is asked for
//! twice in vain. It belongs to the VM's object and goes with it; once it is over the plugin deletes it. Writes are bounded, and back off
//! together where the API server does not answer.

use crate::books::ClusterBooks;
use crate::metrics::Migrations;
use crate::migration_object::{MigrationObject, OURS};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_kit::backoff::Backoff;
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_plugin_core::pods::{Move, Step};
use windlass_protocol::VmName;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Writes per look, at most.
const AT_ONCE: usize = 10;

/// Between looks while the API server does not answer.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// What the controller of migrations needs.
pub struct Migrating {
    /// How the API server is reached.
    pub client: Client,
    /// Its writes are counted there.
    pub counts: Migrations,
    /// Shows that it is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Has VMs move as the books plan it until told to stop.
///
/// # Errors
/// None.
pub async fn run(books: ClusterBooks, migrating: Migrating) -> Result<(), Infallible> {
    let (mut failures, seed) = (0_u32, u64::from(std::process::id()));
    loop {
        let wait = if failures == 0 { EVERY } else { BACKOFF.wait(failures, seed) };
        if !migrating.pulse.rest("VMs that are to move", wait, &migrating.stop).await {
            return Ok(());
        }
        let mut unanswered = None;
        for step in books.migration_plan().into_iter().take(AT_ONCE) {
            migrating.pulse.turn("the API server, for migrations");
            let Some((answer, why)) = migrating.take(&books, &step).await else { break };
            migrating.counts.count(word(&step), answer);
            match (answer, &step) {
                ("done", Step::Begin(Move { vm, node, .. })) => info!(%vm, node, "a VM leaves"),
                ("done", Step::Delete { name, is_given_up: true, .. }) => {
                    warn!(of = %name, "a VM found no other node in time: it stays for now");
                }
                ("refused", _) => {
                    warn!(of = %name(&step), why, "the API server refuses a migration");
                }
                ("no-answer", _) => {
                    unanswered.get_or_insert((name(&step), why));
                }
                _ => {}
            }
        }
        match unanswered {
            Some((of, why)) => {
                failures = failures.saturating_add(1);
                if failures == 1 {
                    warn!(%of, why, "a migration is not written; it is tried again");
                }
            }
            None => failures = 0,
        }
    }
}

// === impl Migrating ===

impl Migrating {
    /// Takes a step; what came of it. `None`: another plugin may lead.
    async fn take(&self, books: &ClusterBooks, step: &Step) -> Option<(&'static str, String)> {
        // Right before the write: another may lead since the look began.
        let _act = books.leadership().act()?;
        let taken = match step {
            Step::Begin(goes) => {
                books.migration_sent(goes);
                let begun = self.begin(books, goes).await;
                if matches!(begun, Err(Failure::Unknown(_)) | Ok(())) {
                    begun
                } else {
                    books.migration_refused(goes);
                    begun
                }
            }
            Step::Delete { name, uid, .. } => self.delete(name, uid).await,
        };
        Some(match taken {
            Ok(()) => ("done", String::new()),
            Err(Failure::Gone(why) | Failure::Conflict(why))
                if matches!(step, Step::Delete { .. }) =>
            {
                ("conflict", why)
            }
            Err(
                Failure::Gone(why)
                | Failure::Conflict(why)
                | Failure::Invalid(why)
                | Failure::Refused(why),
            ) => ("refused", why),
            Err(Failure::Unknown(why)) => ("no-answer", why),
        })
    }

    /// Asks for a migration. One of its name may be there: it is as good if it moves this VM.
    async fn begin(&self, books: &ClusterBooks, goes: &Move) -> Result<(), Failure> {
        let VmName { namespace, .. } = &goes.vm;
        let body = object(goes);
        let request = Request::post(format!("{PATH}/namespaces/{namespace}/{PLURAL}"))
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|error| Failure::Refused(error.to_string()))?;
        let made: MigrationObject = match answered(self.client.request(request)).await {
            Err(Failure::Conflict(why)) => {
                let there = answered(self.of(&goes.vm).get_opt(&goes.migration().name)).await?;
                let there = there.filter(|it| goes.is_served_by(&it.migration));
                there.ok_or(Failure::Conflict(why))?
            }
            made => made?,
        };
        books.migration_seen(made.migration);
        Ok(())
    }

    async fn delete(&self, name: &VmName, uid: &str) -> Result<(), Failure> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams::default().preconditions(preconditions);
        answered(self.of(name).delete(&name.name, &params)).await.map(drop)
    }

    fn of(&self, name: &VmName) -> Api<MigrationObject> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }
}

const PATH: &str = "/apis/vm.neon.tech/v1";
const PLURAL: &str = "virtualmachinemigrations";

/// A migration as NeonVM reads it, with the reference's terms: memory is copied while the VM runs, and the VM never runs in two
/// places by parts.
fn object(goes: &Move) -> Value {
    let Move { vm, object, .. } = goes;
    json!({
        "apiVersion": "vm.neon.tech/v1",
        "kind": "VirtualMachineMigration",
        "metadata": {
            "name": goes.migration().name,
            "namespace": vm.namespace,
            "labels": {OURS: "true"},
            "ownerReferences": [{
                "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
                "name": vm.name, "uid": object,
            }],
        },
        "spec": {
            "vmName": vm.name,
            "preventMigrationToSameHost": true,
            "completionTimeout": 3600,
            "incremental": true,
            "autoConverge": true,
            "maxBandwidth": "1Gi",
            "allowPostCopy": false,
        },
    })
}

/// Which object a step is about.
fn name(step: &Step) -> VmName {
    match step {
        Step::Begin(goes) => goes.migration(),
        Step::Delete { name, .. } => name.clone(),
    }
}

/// As it is counted.
const fn word(step: &Step) -> &'static str {
    match step {
        Step::Begin(_) => "create",
        Step::Delete { is_given_up: true, .. } => "give-up",
        Step::Delete { is_given_up: false, .. } => "delete",
    }
}
