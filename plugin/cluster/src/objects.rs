//! Pods and nodes as the client of the API server lists and watches them: ours, with the metadata that it needs.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use windlass_protocol::config::Problem;
use windlass_protocol::node::Node;
use windlass_protocol::pod::Pod;

/// An object that was read, though it may hold what is invalid.
pub(crate) trait Read {
    /// The first invalid thing, and what counts in its place.
    fn problem(&self) -> Option<&Problem>;
}

/// A pod, read from what the API server sends.
#[derive(Clone, Debug)]
pub(crate) struct PodObject {
    meta: ObjectMeta,
    pub(crate) pod: Pod,
}

/// A node, read from what the API server sends.
#[derive(Clone, Debug)]
pub(crate) struct NodeObject {
    meta: ObjectMeta,
    pub(crate) node: Node,
}

/// Metadata of only what tells objects and their revisions apart.
fn meta(namespace: Option<&str>, name: &str, uid: &str, revision: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        resource_version: Some(revision.to_owned()),
        ..ObjectMeta::default()
    }
}

impl Read for PodObject {
    fn problem(&self) -> Option<&Problem> {
        let vm = || self.pod.vm.as_ref().and_then(|vm| vm.problems.first());
        self.pod.problems.first().or_else(vm)
    }
}

impl Read for NodeObject {
    fn problem(&self) -> Option<&Problem> {
        self.node.problems.first()
    }
}

impl<'de> Deserialize<'de> for PodObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pod = Pod::deserialize(deserializer)?;
        let meta = meta(Some(&pod.name.namespace), &pod.name.name, &pod.uid, &pod.revision);
        Ok(Self { meta, pod })
    }
}

impl<'de> Deserialize<'de> for NodeObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        let meta = meta(None, &node.name, &node.uid, &node.revision);
        Ok(Self { meta, node })
    }
}

/// An object of the core API.
macro_rules! core_object {
    ($type:ty, $scope:ty, $kind:literal, $plural:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                "".into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.meta
            }
        }
    };
}

core_object!(PodObject, NamespaceResourceScope, "Pod", "pods");
core_object!(NodeObject, k8s_openapi::ClusterResourceScope, "Node", "nodes");
