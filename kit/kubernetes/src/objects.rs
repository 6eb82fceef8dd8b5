//! Pods, nodes and VMs' own objects as the client of the API server lists and watches them: ours, with the metadata that it needs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use windlass_protocol::VmName;
use windlass_protocol::config::Problem;
use windlass_protocol::node::Node;
use windlass_protocol::pod::{NodePod, Pod};
use windlass_protocol::vm_object::{Machine, VmObject};

/// An object that was read, though it may hold what is invalid.
pub trait Read {
    /// What is kept of it.
    type Kept;

    /// The first invalid thing, and what counts in its place.
    fn problem(&self) -> Option<&Problem>;

    /// The same, without the metadata that the client needs.
    fn kept(self) -> Self::Kept;
}

/// A pod, read from what the API server sends.
#[derive(Clone, Debug)]
pub struct PodObject {
    meta: ObjectMeta,
    /// The pod.
    pub pod: Pod,
}

/// A pod of an agent's node, read from what the API server sends.
#[derive(Clone, Debug)]
pub struct NodePodObject {
    meta: ObjectMeta,
    pod: NodePod,
}

/// A node, read from what the API server sends.
#[derive(Clone, Debug)]
pub struct NodeObject {
    meta: ObjectMeta,
    /// The node.
    pub node: Node,
}

/// The first invalid thing of a pod, or of its VM.
fn problem_of(pod: &Pod) -> Option<&Problem> {
    let vm = || pod.vm.as_ref().and_then(|vm| vm.problems.first());
    pod.problems.first().or_else(vm)
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

/// A VM's own object, whole, read from what the API server sends: NeonVM's.
#[derive(Clone, Debug)]
pub struct WholeMachineObject {
    meta: ObjectMeta,
    machine: Machine,
}

impl Read for WholeMachineObject {
    type Kept = Machine;

    fn problem(&self) -> Option<&Problem> {
        self.machine.problems.first()
    }

    fn kept(self) -> Machine {
        self.machine
    }
}

impl<'de> Deserialize<'de> for WholeMachineObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let machine = Machine::deserialize(deserializer)?;
        let VmName { namespace, name } = &machine.name;
        let meta = meta(Some(namespace), name, &machine.uid, &machine.revision);
        Ok(Self { meta, machine })
    }
}

impl Read for PodObject {
    type Kept = Pod;

    fn problem(&self) -> Option<&Problem> {
        problem_of(&self.pod)
    }

    fn kept(self) -> Pod {
        self.pod
    }
}

impl Read for NodePodObject {
    type Kept = NodePod;

    fn problem(&self) -> Option<&Problem> {
        problem_of(&self.pod.pod)
    }

    fn kept(self) -> NodePod {
        self.pod
    }
}

impl<'de> Deserialize<'de> for NodePodObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pod = NodePod::deserialize(deserializer)?;
        let whole = &pod.pod;
        let meta = meta(Some(&whole.name.namespace), &whole.name.name, &whole.uid, &whole.revision);
        Ok(Self { meta, pod })
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

/// A VM's own object as books need it, read from what the API server sends: NeonVM's.
#[derive(Clone, Debug)]
pub struct MachineObject {
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

/// Lets the client list and watch objects of a type that has them in its field `meta`: their scope, API group, kind and plural, in
/// version v1.
#[macro_export]
macro_rules! object {
    ($type:ty, $scope:ty, $group:literal, $kind:literal, $plural:literal) => {
        impl ::kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.meta
            }

            fn meta_mut(
                &mut self,
            ) -> &mut ::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.meta
            }
        }
    };
}

object!(PodObject, k8s_openapi::NamespaceResourceScope, "", "Pod", "pods");
object!(NodePodObject, k8s_openapi::NamespaceResourceScope, "", "Pod", "pods");
object!(NodeObject, k8s_openapi::ClusterResourceScope, "", "Node", "nodes");
object!(
    MachineObject,
    k8s_openapi::NamespaceResourceScope,
    "vm.neon.tech",
    "VirtualMachine",
    "virtualmachines"
);
object!(
    WholeMachineObject,
    k8s_openapi::NamespaceResourceScope,
    "vm.neon.tech",
    "VirtualMachine",
    "virtualmachines"
);
