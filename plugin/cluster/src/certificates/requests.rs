//! The requests for the objects that certificates are kept in: to read one, to make one, to replace the very revision that was
//! read.

use super::make::{self, Use};
use super::names::{BUNDLE, CA, CLIENT, Data, KEPT, MADE_BY};
use super::read::bundle_of;
use super::{Certificates, Objects, RoundError, data};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use tracing::info;
use windlass_kit_kubernetes::answers::{Failure, answered};
use windlass_plugin_core::certificates::Write;

/// What the part waits for while it sends a request: it turns with each, since a round of requests that are all answered late takes
/// longer than the watchdog is patient.
const API_SERVER: &str = "the API server, for certificates";

// === impl Certificates ===

impl Certificates {
    pub(super) async fn write(&self, write: Write, objects: Objects) -> Result<(), RoundError> {
        let of_kept = objects.kept.as_ref().map(data).unwrap_or_default();
        let now = self.clock.now();
        match write {
            Write::Kept(keeping) => {
                let made = make::kept(&of_kept, keeping, &self.terms.hosts, now)?;
                let secret = with_data(objects.kept.unwrap_or_else(|| self.tls_secret(KEPT)), made);
                self.put(KEPT, secret).await
            }
            Write::Bundle(_) => {
                let text = String::from_utf8_lossy(&bundle_of(&of_kept)).into_owned();
                let mut bundle = objects.bundle.unwrap_or_else(|| ConfigMap {
                    metadata: self.metadata(BUNDLE),
                    ..ConfigMap::default()
                });
                bundle.data = Some(BTreeMap::from([(CA.certificate.to_owned(), text)]));
                self.put(BUNDLE, bundle).await
            }
            Write::Client => {
                let name = self.terms.scheduler.as_deref().unwrap_or_default();
                let made = make::leaf(&of_kept, Use::Client(name), now)?;
                let secret =
                    with_data(objects.client.unwrap_or_else(|| self.tls_secret(CLIENT)), made);
                self.put(CLIENT, secret).await
            }
        }
    }

    pub(super) async fn get<K>(&self, name: &'static str) -> Result<Option<K>, RoundError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned,
        K: fmt::Debug,
    {
        self.pulse.turn(API_SERVER);
        let read = answered(self.api::<K>().get_opt(name)).await;
        read.map_err(|failure| RoundError::Api(name, failure))
    }

    /// Makes an object, or replaces the very revision that was read. That it was made, changed or deleted meanwhile is no error: the
    /// object is read again. So it is after any other failure, whose write may have taken effect.
    async fn put<K>(&self, name: &'static str, object: K) -> Result<(), RoundError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + Serialize + fmt::Debug,
    {
        let (api, params) = (self.api::<K>(), PostParams::default());
        let is_new = object.meta().resource_version.is_none();
        let sent = async {
            if is_new {
                api.create(&params, &object).await
            } else {
                api.replace(name, &params, &object).await
            }
        };
        self.pulse.turn(API_SERVER);
        let (answer, result) = match answered(sent).await {
            Ok(_) => {
                let namespace = &self.namespace;
                info!(namespace, object = name, is_new, "certificates were written");
                ("done", Ok(()))
            }
            Err(Failure::Conflict(_)) => ("conflict", Ok(())),
            Err(Failure::Gone(_)) if !is_new => ("conflict", Ok(())),
            Err(failure @ (Failure::Gone(_) | Failure::Invalid(_) | Failure::Refused(_))) => {
                ("refused", Err(failure))
            }
            Err(failure @ Failure::Unknown(_)) => ("no-answer", Err(failure)),
        };
        self.counts.write(name, answer);
        result.map_err(|failure| RoundError::Api(name, failure))
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn tls_secret(&self, name: &str) -> Secret {
        let type_ = Some("kubernetes.io/tls".to_owned());
        Secret { metadata: self.metadata(name), type_, ..Secret::default() }
    }

    fn metadata(&self, name: &str) -> ObjectMeta {
        let (label, value) = MADE_BY;
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.clone()),
            labels: Some(BTreeMap::from([(label.to_owned(), value.to_owned())])),
            ..ObjectMeta::default()
        }
    }
}

fn with_data(secret: Secret, data: Data) -> Secret {
    let data = data.into_iter().map(|(key, bytes)| (key, ByteString(bytes))).collect();
    Secret { data: Some(data), ..secret }
}
