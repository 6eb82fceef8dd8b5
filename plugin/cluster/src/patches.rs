//! The annotation `windlass.dev/ceiling` of a pod, as it is read and replaced at the API server.
//!
//! A write takes effect on one uid and on one text alone: another text, or a pod of another uid, refuses it. Where
//! the annotation is absent, the pod's revision stands in for the text.

use crate::answers::{Failure, answered};
use crate::objects::PodObject;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_protocol::VmName;
use windlass_protocol::annotations::CEILING;
use windlass_protocol::pod::Ceiling;

/// In a JSON pointer `/` is written as `~1`.
const POINTER: &str = "/metadata/annotations/windlass.dev~1ceiling";

/// The API server answers with the metadata alone.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Reads and replaces the annotation. Clones are cheap.
#[derive(Clone)]
pub struct Patches(Client);

/// The annotation of a pod, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// This text.
    Text(String),
    /// None, at this revision of the pod.
    Absent(String),
}

// === impl Patches ===

impl Patches {
    /// Through this client.
    pub const fn new(client: Client) -> Self {
        Self(client)
    }

    /// The annotation of the pod with this name and uid.
    pub(crate) async fn read(&self, pod: &VmName, uid: &str) -> Result<Found, Failure> {
        let read = answered(self.pods(pod).get_metadata_opt(&pod.name)).await?;
        let read = read.filter(|read| read.metadata.uid.as_deref() == Some(uid));
        let read = read.ok_or_else(|| Failure::Gone(format!("no pod {pod} with uid {uid}")))?;
        let revision = || Found::Absent(read.resource_version().unwrap_or_default());
        Ok(read.annotations().get(CEILING).map_or_else(revision, |text| Found::Text(text.clone())))
    }

    /// Replaces what was found.
    pub(crate) async fn replace(
        &self,
        pod: &VmName,
        uid: &str,
        found: &Found,
        next: &Ceiling,
    ) -> Result<(), Failure> {
        let next = next.encode();
        match found {
            Found::Text(text) => self.replace_text(pod, uid, text, &next).await,
            Found::Absent(revision) => {
                let annotations = json!({ CEILING: next });
                let metadata = json!({
                    "uid": uid, "resourceVersion": revision, "annotations": annotations,
                });
                let patch = Patch::Merge(json!({ "metadata": metadata }));
                let (pods, params) = (self.pods(pod), PatchParams::default());
                answered(pods.patch_metadata(&pod.name, &params, &patch)).await.map(drop)
            }
        }
    }

    async fn replace_text(
        &self,
        pod: &VmName,
        uid: &str,
        text: &str,
        next: &str,
    ) -> Result<(), Failure> {
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": uid },
            { "op": "test", "path": POINTER, "value": text },
            { "op": "replace", "path": POINTER, "value": next },
        ]);
        let VmName { namespace, name } = pod;
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("/api/v1/namespaces/{namespace}/pods/{name}"))
            .header(CONTENT_TYPE, "application/json-patch+json")
            .header(ACCEPT, METADATA)
            .body(patch.to_string().into_bytes())
            .map_err(|error| Failure::Refused(error.to_string()))?;
        answered(self.0.request::<Value>(request)).await.map(drop)
    }

    fn pods(&self, pod: &VmName) -> Api<PodObject> {
        Api::namespaced(self.0.clone(), &pod.namespace)
    }
}

// === impl Found ===

impl Found {
    /// The ceiling, if it is readable.
    pub(crate) fn ceiling(&self) -> Option<Ceiling> {
        match self {
            Self::Text(text) => Ceiling::decode(text).ok(),
            Self::Absent(_) => None,
        }
    }
}
