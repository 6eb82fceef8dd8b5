//! The annotation `windlass.dev/ceiling` of a pod or of a VM's own object, as it is read and replaced at the API server.
//!
//! A write takes effect on one uid and on one text alone: another text, or an object of another uid, refuses it. Where
//! the annotation is absent, the object's revision stands in for the text.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_kit_kubernetes::objects::{MachineObject, PodObject, Read};
use windlass_plugin_core::pods::CeilingOn;
use windlass_protocol::VmName;
use windlass_protocol::annotations::CEILING;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::vm_object::VmObject;

/// In a JSON pointer `/` is written as `~1`.
const POINTER: &str = "/metadata/annotations/windlass.dev~1ceiling";

/// The API server answers with the metadata alone.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Reads and replaces the annotation. Clones are cheap.
#[derive(Clone)]
pub struct Patches(Client);

/// The annotation of an object, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// This text.
    Text(String),
    /// None, or whatever there is, at this revision of the object.
    Absent(String),
}

/// What has the annotation.
trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl Object for PodObject {}
impl Object for MachineObject {}

// === impl Patches ===

impl Patches {
    /// Through this client.
    pub const fn new(client: Client) -> Self {
        Self(client)
    }

    /// The annotation of this object.
    pub(crate) async fn read(&self, on: &CeilingOn) -> Result<Found, Failure> {
        match on {
            CeilingOn::Pod(name, uid) => self.read_of::<PodObject>(name, uid).await,
            CeilingOn::Object(name, uid) => self.read_of::<MachineObject>(name, uid).await,
        }
    }

    /// This object of a VM, as its books need it.
    pub(crate) async fn read_object(&self, name: &VmName) -> Result<Option<VmObject>, Failure> {
        let read = answered(self.all::<MachineObject>(name).get_opt(&name.name)).await?;
        Ok(read.map(MachineObject::kept))
    }

    /// Replaces what was found.
    pub(crate) async fn replace(
        &self,
        on: &CeilingOn,
        found: &Found,
        next: &Ceiling,
    ) -> Result<(), Failure> {
        let next = next.encode();
        match on {
            CeilingOn::Pod(name, uid) => {
                self.replace_of::<PodObject>((name, uid), found, &next).await
            }
            CeilingOn::Object(name, uid) => {
                self.replace_of::<MachineObject>((name, uid), found, &next).await
            }
        }
    }

    async fn read_of<K: Object>(&self, name: &VmName, uid: &str) -> Result<Found, Failure> {
        let read = answered(self.all::<K>(name).get_metadata_opt(&name.name)).await?;
        let read = read.filter(|read| read.metadata.uid.as_deref() == Some(uid));
        let kind = K::kind(&());
        let read = read.ok_or_else(|| Failure::Gone(format!("no {kind} {name} with uid {uid}")))?;
        let revision = || Found::Absent(read.resource_version().unwrap_or_default());
        Ok(read.annotations().get(CEILING).map_or_else(revision, |text| Found::Text(text.clone())))
    }

    async fn replace_of<K: Object>(
        &self,
        (name, uid): (&VmName, &str),
        found: &Found,
        next: &str,
    ) -> Result<(), Failure> {
        match found {
            Found::Text(text) => self.replace_text::<K>((name, uid), text, next).await,
            Found::Absent(revision) => {
                let annotations = json!({ CEILING: next });
                let metadata = json!({
                    "uid": uid, "resourceVersion": revision, "annotations": annotations,
                });
                let patch = Patch::Merge(json!({ "metadata": metadata }));
                let (all, params) = (self.all::<K>(name), PatchParams::default());
                answered(all.patch_metadata(&name.name, &params, &patch)).await.map(drop)
            }
        }
    }

    async fn replace_text<K: Object>(
        &self,
        (name, uid): (&VmName, &str),
        text: &str,
        next: &str,
    ) -> Result<(), Failure> {
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": uid },
            { "op": "test", "path": POINTER, "value": text },
            { "op": "replace", "path": POINTER, "value": next },
        ]);
        let VmName { namespace, name } = name;
        let url = K::url_path(&(), Some(namespace));
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{url}/{name}"))
            .header(CONTENT_TYPE, "application/json-patch+json")
            .header(ACCEPT, METADATA)
            .body(patch.to_string().into_bytes())
            .map_err(|error| Failure::Refused(error.to_string()))?;
        answered(self.0.request::<Value>(request)).await.map(drop)
    }

    fn all<K: Object>(&self, of: &VmName) -> Api<K> {
        Api::namespaced(self.0.clone(), &of.namespace)
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

impl From<Ceiling> for Found {
    fn from(ceiling: Ceiling) -> Self {
        Self::Text(ceiling.encode())
    }
}
