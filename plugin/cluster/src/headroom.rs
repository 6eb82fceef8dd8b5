//! Makes, resizes and deletes the headroom pods, as the books plan it.
//!
//! A headroom pod holds room of a node that VMs may grow into, so that Kubernetes gives it to no other pod. The books
//! say what is to be written; before a write is sent they let the room fall to what the pod asks for after it, and they
//! raise it when the watch shows what the kubelet has allocated. A write carries the uid and the revision of its pod.
//! Writes are bounded, and those of a node that fail back off ([`Pacing`]); what fails is counted, and logged once.
//!
//! A headroom pod belongs to the plugin's service account: that object is there wherever the plugin runs, and no
//! person deletes it to have the plugin start again, as a Lease may be. `kubectl drain` and the cluster autoscaler pass
//! over no pod without an owner. The pod has requests and no limits: a pod with both equal is given processors of its
//! own by a kubelet with a static policy, and those would be taken from the VMs.

use crate::binder::ApiError;
use crate::books::ClusterBooks;
use crate::metrics::HeadroomWrites;
use http::Request;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_kit::watchdog::Pulse;
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_kit_kubernetes::objects::PodObject;
use windlass_plugin_core::pods::{Change, Pacing, Write, Written};
use windlass_protocol::NoSuccess;
use windlass_protocol::Resources;
use windlass_protocol::pod::HEADROOM;
use windlass_protocol::quantity::cpu_text;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);

/// Writes per look, at most.
const AT_ONCE: usize = 20;

/// The container of a headroom pod.
const CONTAINER: &str = "hold";
/// It does nothing.
const IMAGE: &str = "registry.k8s.io/pause:3.10.1";
/// `deploy/kustomize/plugin` makes this class: its pods are evicted for no pod of a user, and evict none.
const PRIORITY_CLASS: &str = "windlass-headroom";
/// The plugin's service account, which owns the pods.
const OWNER: &str = "windlass-plugin";

/// What the controller of headroom pods needs.
pub struct Headroom {
    /// How the API server is reached.
    pub client: Client,
    /// The plugin's own namespace.
    pub namespace: String,
    /// Its writes are counted there.
    pub counts: HeadroomWrites,
    /// Shows that it is alive.
    pub pulse: Pulse,
    /// Ends it.
    pub stop: CancellationToken,
}

/// Keeps headroom pods as the books plan them until told to stop.
///
/// # Errors
/// None.
pub async fn run(books: ClusterBooks, headroom: Headroom) -> Result<(), Infallible> {
    let mut pacing = Pacing::new(std::process::id().into());
    let mut is_failing = false;
    while headroom.pulse.rest("headroom pods", EVERY, &headroom.stop).await {
        if books.serves().is_err() {
            continue;
        }
        let mut due = pacing.due(books.headroom_plan(), books.now());
        due.truncate(AT_ONCE);
        if due.is_empty() {
            continue;
        }
        headroom.pulse.turn("the API server, for headroom pods");
        let written = due.iter().map(|change| headroom.write(&books, change));
        let written = futures_util::future::join_all(written).await;
        let mut failed = None;
        for (change, outcome) in due.into_iter().zip(written) {
            let (now, node) = (books.now(), &change.node);
            match outcome {
                Ok(None) => continue,
                Ok(Some(is_done)) => {
                    if let (true, Write::Resize { gives_up: true, .. }) = (is_done, &change.write) {
                        debug!(node, "the kubelet has no room for more headroom");
                    }
                    pacing.written(&change, is_done, now);
                }
                Err(why) => {
                    pacing.written(&change, false, now);
                    failed.get_or_insert((change.node, why));
                }
            }
        }
        match (failed, is_failing) {
            (Some((node, why)), false) => {
                is_failing = true;
                warn!(node, why, "a headroom pod is not written; it is tried again");
            }
            (None, true) => {
                is_failing = false;
                info!("headroom pods are written again");
            }
            (Some(_), true) | (None, false) => {}
        }
    }
    Ok(())
}

// === impl Headroom ===

impl Headroom {
    /// Writes a change. `None`: it is not sent, since another may lead, or the books do not let it. `false`: it meets
    /// another revision.
    async fn write(&self, books: &ClusterBooks, change: &Change) -> Result<Option<bool>, String> {
        let owner = match &change.write {
            Write::Create { .. } => Some(self.owner().await?),
            Write::Resize { .. } | Write::Delete { .. } => None,
        };
        // Right before the write: another may lead since the look began.
        let act = books.leadership().act();
        if act.is_none() || !books.headroom_sent(change) {
            return Ok(None);
        }
        let (word, sent) = match &change.write {
            Write::Create { size } => {
                ("create", self.create(change, *size, owner.unwrap_or_default()).await)
            }
            Write::Resize { uid, revision, size, .. } => {
                ("resize", self.resize(change, uid, revision, *size).await)
            }
            Write::Delete { uid, revision, .. } => {
                ("delete", self.delete(change, uid, revision).await)
            }
        };
        let (written, answer) = match &sent {
            Ok(true) => (Written::Answered, "done"),
            Ok(false) => (Written::of(NoSuccess::Conflict), "conflict"),
            Err(ApiError::Refused(_) | ApiError::NotSent) => {
                (Written::of(NoSuccess::Refused), "refused")
            }
            Err(ApiError::Unknown(_)) => (Written::of(NoSuccess::Unknown), "no-answer"),
        };
        self.counts.count(word, answer);
        books.headroom_written(change, written);
        match sent {
            Ok(is_done) => Ok(Some(is_done)),
            Err(ApiError::NotSent) => Ok(None),
            Err(ApiError::Refused(why) | ApiError::Unknown(why)) => Err(why),
        }
    }

    /// The uid of the object that owns headroom pods.
    async fn owner(&self) -> Result<String, String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        match answered(accounts.get(OWNER)).await.map_err(ApiError::from) {
            Ok(account) => Ok(account.metadata.uid.unwrap_or_default()),
            Err(ApiError::Refused(why) | ApiError::Unknown(why)) => Err(why),
            Err(ApiError::NotSent) => Err("another plugin may lead".to_owned()),
        }
    }

    /// `false`: a pod of this name is there, or its namespace is not.
    async fn create(
        &self,
        change: &Change,
        size: Resources,
        owner: String,
    ) -> Result<bool, ApiError> {
        let pod = pod(change, size, &owner);
        let request = Request::post(format!("/api/v1/namespaces/{}/pods", self.namespace))
            .header(CONTENT_TYPE, "application/json")
            .body(pod.to_string().into_bytes())
            .map_err(|error| ApiError::Refused(error.to_string()))?;
        unless_conflict(answered(self.client.request::<PodObject>(request)).await)
    }

    async fn resize(
        &self,
        change: &Change,
        uid: &str,
        revision: &str,
        size: Resources,
    ) -> Result<bool, ApiError> {
        let patch = Patch::Strategic(json!({
            "metadata": {"uid": uid, "resourceVersion": revision},
            "spec": {"containers": [{"name": CONTAINER, "resources": {"requests": requests(size)}}]},
        }));
        let (params, name) = (PatchParams::default(), &change.pod.name);
        unless_conflict(
            answered(self.pods().patch_subresource("resize", name, &params, &patch)).await,
        )
    }

    async fn delete(&self, change: &Change, uid: &str, revision: &str) -> Result<bool, ApiError> {
        let (uid, resource_version) = (Some(uid.to_owned()), Some(revision.to_owned()));
        let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version });
        unless_conflict(answered(self.pods().delete(&change.pod.name, &params)).await)
    }

    fn pods(&self) -> Api<PodObject> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// `false`: the pod has another revision, is gone, or is there already. The watch will show it.
fn unless_conflict<T>(answer: Result<T, Failure>) -> Result<bool, ApiError> {
    match answer {
        Ok(_) => Ok(true),
        Err(Failure::Conflict(_)) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

fn pod(change: &Change, size: Resources, owner: &str) -> Value {
    let in_place = ["cpu", "memory"]
        .map(|resource| json!({"resourceName": resource, "restartPolicy": "NotRequired"}));
    json!({
        "metadata": {
            "name": change.pod.name,
            "namespace": change.pod.namespace,
            "labels": {HEADROOM: "true", "app.kubernetes.io/name": "windlass-headroom"},
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ServiceAccount", "name": OWNER, "uid": owner,
                "controller": true,
            }],
        },
        "spec": {
            "nodeName": change.node,
            "priorityClassName": PRIORITY_CLASS,
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": CONTAINER,
                "image": IMAGE,
                "resources": {"requests": requests(size)},
                "resizePolicy": in_place,
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    })
}

fn requests(size: Resources) -> Value {
    json!({"cpu": cpu_text(size.cpu), "memory": size.mem.bytes().to_string()})
}
