//! Pods, nodes, VMs' own objects and migrations as the client of the API server lists and watches them: ours, with the metadata that it needs.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use windlass_plugin_core::pods::Migration;
use windlass_protocol::VmName;
use windlass_protocol::config::Problem;
use windlass_protocol::node::Node;
use windlass_protocol::pod::Pod;
use windlass_protocol::vm_object::VmObject;

/// An object that was read, though it may hold what is invalid.
pub(crate) trait Read {
    /// What the books need of it.
    type Kept;

    /// The first invalid thing, and what counts in its place.
    fn problem(&self) -> Option<&Problem>;

    /// The same, without the metadata that the client needs.
    fn kept(self) -> Self::Kept;
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
    type Kept = Pod;

    fn problem(&self) -> Option<&Problem> {
        let vm = || self.pod.vm.as_ref().and_then(|vm| vm.problems.first());
        self.pod.problems.first().or_else(vm)
    }

    fn kept(self) -> Pod {
        self.pod
    }
}

impl Read for NodeObject {
    type Kept = Node;

    fn problem(&self) -> Option<&Problem> {
        self.node.problems.first()
    }

    fn kept(self) -> Node {
        self.node
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

/// A VM's own object, read from what the API server sends: NeonVM's.
#[derive(Clone, Debug)]
pub(crate) struct MachineObject {
    meta: ObjectMeta,
    object: VmObject,
}

impl Read for MachineObject {
    type Kept = VmObject;

    fn problem(&self) -> Option<&Problem> {
        self.object.problems.first()
    }

    fn kept(self) -> VmObject {
        self.object
    }
}

impl<'de> Deserialize<'de> for MachineObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = VmObject::deserialize(deserializer)?;
        let VmName { namespace, name } = &object.name;
        let meta = meta(Some(namespace), name, &object.uid, &object.revision);
        Ok(Self { meta, object })
    }
}

/// A migration of a VM, read from what the API server sends: NeonVM's object.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "MigrationWire")]
pub(crate) struct MigrationObject {
    meta: ObjectMeta,
    pub(crate) migration: Migration,
}

/// The label of a migration that the plugin made.
pub(crate) const OURS: &str = "windlass.dev/migration";

#[derive(Deserialize)]
struct MigrationWire {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: MigrationSpec,
    #[serde(default)]
    status: Option<MigrationStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MigrationSpec {
    #[serde(default)]
    vm_name: String,
}

#[derive(Deserialize)]
struct MigrationStatus {
    #[serde(default)]
    phase: String,
}

impl From<MigrationWire> for MigrationObject {
    fn from(wire: MigrationWire) -> Self {
        let MigrationWire { metadata: meta, spec, status } = wire;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let named = |name: String| VmName { namespace: namespace.clone(), name };
        let phase = status.map(|status| status.phase).unwrap_or_default();
        let ours = meta.labels.as_ref().and_then(|labels| labels.get(OURS));
        let migration = Migration {
            name: named(meta.name.clone().unwrap_or_default()),
            uid: meta.uid.clone().unwrap_or_default(),
            vm: named(spec.vm_name),
            is_ours: ours.is_some_and(|word| word == "true"),
            is_over: phase == "Succeeded" || phase == "Failed",
        };
        Self { meta, migration }
    }
}

impl Read for MigrationObject {
    type Kept = Migration;

    fn problem(&self) -> Option<&Problem> {
        None
    }

    fn kept(self) -> Migration {
        self.migration
    }
}

/// An object of an API group.
macro_rules! object {
    ($type:ty, $scope:ty, $group:literal, $kind:literal, $plural:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
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

object!(PodObject, NamespaceResourceScope, "", "Pod", "pods");
object!(NodeObject, k8s_openapi::ClusterResourceScope, "", "Node", "nodes");
object!(MachineObject, NamespaceResourceScope, "vm.neon.tech", "VirtualMachine", "virtualmachines");
object!(
    MigrationObject,
    NamespaceResourceScope,
    "vm.neon.tech",
    "VirtualMachineMigration",
    "virtualmachinemigrations"
);
