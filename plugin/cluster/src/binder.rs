//! Binds a pod to a node: the commit point of a placement.
//!
//! The pod is read, the books reserve or refuse, and then the API server binds the very revision that was read:
//! the Binding carries its uid and resourceVersion. A pod that the scheduler asked about, and that is as the watch shows it,
//! is read only if the API server refuses that revision. No lock is held across a request. A binding whose
//! answer is lost stays in the books until the [`settler`](crate::settler) has read the pod.

use crate::asked::Asked;
use crate::books::ClusterBooks;
use crate::metrics::Bindings;
use crate::rebuild::NotYet;
use k8s_openapi::api::core::v1::{Binding, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use tracing::{info, warn};
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_kit_kubernetes::objects::PodObject;
use windlass_plugin_core::ceilings::FirstCeiling;
use windlass_plugin_core::pods::{Outcome, Placement, WhyNot};
use windlass_protocol::VmName;
use windlass_protocol::annotations::CEILING;
use windlass_protocol::extender::BindingArgs;
use windlass_protocol::pod::Pod;

/// Binds pods. Clones share what is under way.
#[derive(Clone)]
pub struct Binder {
    client: Client,
    books: ClusterBooks,
    counts: Bindings,
    /// What the scheduler asked about last.
    asked: Asked,
    /// Pods for which a binding is being made, or a lost one settled.
    busy: Arc<Mutex<BTreeSet<VmName>>>,
}

/// Why a pod was not bound.
#[derive(Debug, Error)]
pub enum BindError {
    /// A request is no binding.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// The plugin does not answer.
    #[error(transparent)]
    NotYet(#[from] NotYet),
    /// Another binding of this pod is being made.
    #[error("a binding of pod {0} is under way")]
    UnderWay(VmName),
    /// There is no such pod, or another one has its name.
    #[error("pod {0} with uid {1} is gone")]
    Gone(VmName, String),
    /// The books refuse.
    #[error(transparent)]
    Refused(#[from] WhyNot),
    /// The API server refuses.
    #[error("the API server refuses: {0}")]
    Api(String),
    /// The API server did not answer.
    #[error("the API server did not answer: {0}")]
    NoAnswer(String),
}

/// A request to the API server that was not answered with success.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The answer is a refusal.
    Refused(String),
    /// Whether it took effect is not known.
    Unknown(String),
    /// It was not sent: another plugin may lead.
    NotSent,
}

/// Takes the pod off the busy ones at the end, whatever the end is.
pub(crate) struct Busy<'a>(&'a Binder, VmName);

// === impl Binder ===

impl Binder {
    /// Binds through this client what these books have room for.
    pub fn new(client: Client, books: ClusterBooks, counts: Bindings) -> Self {
        Self { client, books, counts, asked: Asked::default(), busy: Arc::default() }
    }

    /// The scheduler asks about this pod: it may have it bound next.
    pub(crate) fn expect(&self, pod: Pod) {
        self.asked.note(pod);
    }

    /// Binds a pod to a node.
    ///
    /// # Errors
    /// Why it is not bound, as far as is known.
    pub async fn bind(&self, args: &BindingArgs) -> Result<(), BindError> {
        let bound = self.try_bind(args).await;
        let BindingArgs { pod, node, .. } = args;
        match &bound {
            Ok(()) => info!(%pod, node, "bound"),
            Err(why) => warn!(%pod, node, %why, "not bound"),
        }
        self.counts.count(bound.as_ref().map_or_else(BindError::word, |()| "bound"));
        bound
    }

    async fn try_bind(&self, args: &BindingArgs) -> Result<(), BindError> {
        let BindingArgs { pod: name, uid, node } = args;
        let fields = [("PodNamespace", &name.namespace), ("PodName", &name.name)];
        let fields = fields.into_iter().chain([("PodUID", uid), ("Node", node)]);
        if let Some((field, _)) = fields.into_iter().find(|(_, text)| text.is_empty()) {
            return Err(BindError::Empty(field));
        }
        self.books.serves()?;
        let _busy = self.begin(name).ok_or_else(|| BindError::UnderWay(name.clone()))?;
        if let Some(pod) = self.asked.take(name, uid).filter(|pod| self.books.shows(pod)) {
            match self.bind_as(&pod, node).await {
                // The pod has changed since, unless what is read tells of something else.
                Err(BindError::Api(_)) => {}
                bound => return bound,
            }
        }
        let gone = || BindError::Gone(name.clone(), uid.clone());
        let pod = self.read(name).await?.filter(|pod| pod.uid == *uid).ok_or_else(gone)?;
        self.bind_as(&pod, node).await
    }

    /// Binds this revision of a pod.
    async fn bind_as(&self, pod: &Pod, node: &str) -> Result<(), BindError> {
        let Pod { name, uid, .. } = pod;
        let (placement, first) = self.books.place(pod, node)?;
        match self.request(&placement, first).await {
            Ok(()) => {
                self.books.bound(name, uid, first);
                Ok(())
            }
            Err(ApiError::Refused(why)) => {
                self.books.settle(name, uid, Outcome::Refused);
                Err(BindError::Api(why))
            }
            Err(ApiError::NotSent) => {
                self.books.settle(name, uid, Outcome::Refused);
                Err(NotYet::NotLeading.into())
            }
            // The room stays reserved until the pod was read.
            Err(ApiError::Unknown(why)) => Err(BindError::NoAnswer(why)),
        }
    }

    /// A pod, as the API server has it; `None`: there is none.
    pub(crate) async fn read(&self, name: &VmName) -> Result<Option<Pod>, ApiError> {
        let Some(pods) = self.pods(name) else { return Ok(None) };
        let read = answered(pods.get_opt(&name.name)).await?;
        Ok(read.map(|object: PodObject| object.pod))
    }

    /// Gives a pod an annotation, so that it has another revision and its scheduler looks at it again; the pod as it is
    /// then. `None`: the pod is gone.
    pub(crate) async fn annotate(
        &self,
        name: &VmName,
        uid: &str,
        key: &str,
        value: &str,
    ) -> Result<Option<Pod>, ApiError> {
        // A pod of another uid is refused with a conflict.
        let patch = json!({ "metadata": { "uid": uid, "annotations": { key: value } } });
        let Some(pods) = self.pods(name) else { return Ok(None) };
        let params = PatchParams::default();
        let _act = self.books.leadership().act().ok_or(ApiError::NotSent)?;
        match answered(pods.patch(&name.name, &params, &Patch::Merge(&patch))).await {
            Ok(object) => return Ok(Some(object.pod)),
            Err(Failure::Gone(_) | Failure::Conflict(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
        // A conflict may be one with another change of the same pod.
        match self.read(name).await?.filter(|pod| pod.uid == uid) {
            Some(_) => Err(ApiError::Unknown("the pod changes at the same time".to_owned())),
            None => Ok(None),
        }
    }

    /// Binds, and records the first ceiling of the pod's VM in the same step: the API server copies annotations of a Binding
    /// to its pod.
    async fn request(
        &self,
        placement: &Placement,
        first: Option<FirstCeiling>,
    ) -> Result<(), ApiError> {
        let Placement { pod, uid, revision, node, .. } = placement;
        let binding = Binding {
            metadata: ObjectMeta {
                namespace: Some(pod.namespace.clone()),
                name: Some(pod.name.clone()),
                uid: Some(uid.clone()),
                resource_version: Some(revision.clone()),
                annotations: first
                    .map(|first| [(CEILING.to_owned(), first.recorded.encode())].into()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.clone()),
                ..ObjectReference::default()
            },
        };
        let none = || ApiError::Refused(format!("no pod can have the name {pod}"));
        let (pods, params) = (self.pods(pod).ok_or_else(none)?, PostParams::default());
        // The pod's revision was read before this look: a leader that comes after it changes the pod first.
        let _act = self.books.leadership().act().ok_or(ApiError::NotSent)?;
        let sent = pods.create_subresource::<_, Status>("binding", &pod.name, &params, &binding);
        Ok(answered(sent).await.map(drop)?)
    }

    /// The pods of a namespace; `None`: no pod can have this name. Names of the scheduler's requests become parts of a
    /// path.
    fn pods(&self, name: &VmName) -> Option<Api<PodObject>> {
        let pods = || Api::namespaced(self.client.clone(), &name.namespace);
        (is_name(&name.namespace) && is_name(&name.name)).then(pods)
    }

    /// Takes this pod, until what is returned is dropped; `None`: it is taken.
    pub(crate) fn begin(&self, name: &VmName) -> Option<Busy<'_>> {
        self.busy().insert(name.clone()).then(|| Busy(self, name.clone()))
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, BTreeSet<VmName>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl BindError ===

impl BindError {
    /// As it is counted.
    const fn word(&self) -> &'static str {
        match self {
            Self::Empty(_) => "bad-request",
            Self::NotYet(not_yet) => not_yet.word(),
            Self::UnderWay(_) => "under-way",
            Self::Gone(..) => "gone",
            Self::Refused(_) => "no-room",
            Self::Api(_) => "refused",
            Self::NoAnswer(_) => "no-answer",
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy().remove(&self.1);
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let is_refusal = failure.kind().is_refusal();
        let why = failure.to_string();
        if is_refusal { Self::Refused(why) } else { Self::Unknown(why) }
    }
}

impl From<ApiError> for BindError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Refused(why) => Self::Api(why),
            ApiError::Unknown(why) => Self::NoAnswer(why),
            ApiError::NotSent => Self::NotYet(NotYet::NotLeading),
        }
    }
}

/// Whether this can be the name of a pod or of its namespace: lower-case letters and digits, and between them
/// dashes and dots.
fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_known = |c: char| is_inner(c) || c == '-' || c == '.';
    (1..=253).contains(&text.len())
        && text.chars().all(is_known)
        && text.starts_with(is_inner)
        && text.ends_with(is_inner)
}
