//! The kubelet of one node, without containers.
//!
//! It does what the rest of a cluster can see: it admits the pods that are bound to its node or rejects them
//! (`OutOfcpu`), says that they run, resizes them in place or says why not, and ends them. The order of things
//! is that of Kubernetes 1.35 (`HandlePodAdditions`, `HandlePodUpdates` and `HandlePodRemoves` in
//! `pkg/kubelet/kubelet.go`). It follows a watch; what it hears twice does no harm. Pods that a [`Runtime`](runtime::Runtime) runs
//! are admitted and resized here alone: the runtime says whether they run, and ends them.

mod allocations;
pub mod runtime;
mod status;

use allocations::{Allocations, Outcome, uid};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Client, Error, ResourceExt};
use serde_json::Value;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;
use tokio::task::JoinSet;

/// Between two tries of a write that the API server did not answer.
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// A kubelet. It stops with its value; its pods stay as they are.
#[derive(Debug)]
pub struct Kubelet {
    _work: JoinSet<()>,
}

struct Work {
    client: Client,
    node: String,
    /// The namespace of pods whose programs a runtime runs.
    of_runtime: Option<String>,
    allocations: Allocations,
    /// The pods of a list that is not at its end.
    listed: Vec<Pod>,
    /// The pods that were rejected, until the watch shows it: what comes before is older.
    rejected: BTreeSet<String>,
}

// === impl Kubelet ===

impl Kubelet {
    /// The kubelet of a node that is there, with what it can give at this moment.
    pub async fn start(client: &Client, node: &str) -> Self {
        Self::start_with(client, node, None).await
    }

    /// The same, beside a runtime that runs the programs of a namespace's pods.
    pub async fn start_beside_runtime(client: &Client, node: &str, namespace: &str) -> Self {
        Self::start_with(client, node, Some(namespace.to_owned())).await
    }

    async fn start_with(client: &Client, node: &str, of_runtime: Option<String>) -> Self {
        let nodes: Api<Node> = Api::all(client.clone());
        let status = nodes.get(node).await.unwrap().status.unwrap_or_default();
        let allocations = Allocations::of(&status.allocatable.unwrap_or_default());
        let (client, node) = (client.clone(), node.to_owned());
        let (listed, rejected) = (Vec::new(), BTreeSet::new());
        let work = Work { client, node, of_runtime, allocations, listed, rejected };
        Self { _work: JoinSet::from_iter([work.run()]) }
    }
}

// === impl Work ===

impl Work {
    async fn run(mut self) {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let of_node = watcher::Config::default().fields(&format!("spec.nodeName={}", self.node));
        let mut events = pin!(watch(pods, of_node).default_backoff());
        while let Some(event) = events.next().await {
            // A watch that breaks begins anew.
            if let Ok(event) = event {
                self.hear(event).await;
            }
        }
    }

    async fn hear(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.push(pod);
                return;
            }
            Event::InitDone => {
                let mut pods = std::mem::take(&mut self.listed);
                // What runs has its room already; the rest comes in the order of its creation.
                pods.sort_by_key(|pod| (!runs(pod), pod.metadata.creation_timestamp.clone()));
                self.allocations.keep(&pods);
                for pod in &pods {
                    self.see(pod).await;
                }
            }
            Event::Apply(pod) => self.see(&pod).await,
            Event::Delete(pod) => self.allocations.forget(&pod),
        }
        self.serve().await;
    }

    /// Does what a pod needs as it is now.
    async fn see(&mut self, pod: &Pod) {
        let is_to_end = pod.metadata.deletion_timestamp.is_some();
        if matches!(phase(pod), Some("Succeeded" | "Failed")) {
            self.rejected.remove(uid(pod));
            self.allocations.forget(pod);
            if is_to_end {
                self.delete(pod).await;
            }
        } else if is_to_end {
            if self.is_of_runtime(pod) {
                return;
            }
            // The pod is deleted once the API server says that it is over.
            self.write(pod, status::ended(pod)).await;
        } else if self.allocations.has(pod) || runs(pod) {
            if self.allocations.hear(pod) {
                self.write(pod, status::settled(pod)).await;
            }
        } else if !self.rejected.contains(uid(pod)) {
            match self.allocations.admit(pod) {
                Ok(()) if self.is_of_runtime(pod) => {}
                Ok(()) => self.write(pod, status::running(pod)).await,
                Err(answer) => {
                    self.rejected.insert(uid(pod).to_owned());
                    self.write(pod, status::rejected(pod, &answer)).await;
                }
            }
        }
    }

    fn is_of_runtime(&self, pod: &Pod) -> bool {
        self.of_runtime == pod.namespace() && runtime::is_run(pod)
    }

    /// Serves the pods that want another size.
    async fn serve(&mut self) {
        for outcome in self.allocations.retry() {
            match outcome {
                Outcome::Allocated { before, now } => {
                    self.write(&now, status::allocated(&before, &now)).await;
                    self.write(&now, status::resized(&now)).await;
                }
                Outcome::Pending(pod, answer) => {
                    self.write(&pod, status::pending(&pod, &answer)).await;
                }
            }
        }
    }

    async fn write(&self, pod: &Pod, status: Value) {
        let (pods, name, params) = (self.pods_beside(pod), pod.name_any(), PatchParams::default());
        let status = Patch::Strategic(status);
        while !self.is_answered(pods.patch_status(&name, &params, &status).await.err()) {
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }

    async fn delete(&self, pod: &Pod) {
        let this = Preconditions { uid: Some(uid(pod).to_owned()), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(this);
        let (pods, name) = (self.pods_beside(pod), pod.name_any());
        while !self.is_answered(pods.delete(&name, &params).await.err()) {
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }

    /// Whether the API server has answered. That the pod is gone is an answer.
    fn is_answered(&self, error: Option<Error>) -> bool {
        match error {
            Some(Error::Api(refusal)) if !matches!(refusal.code, 404 | 409) => {
                panic!("the kubelet of {}: {refusal}", self.node)
            }
            None | Some(Error::Api(_)) => true,
            Some(_) => false,
        }
    }

    fn pods_beside(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn runs(pod: &Pod) -> bool {
    phase(pod) == Some("Running")
}
