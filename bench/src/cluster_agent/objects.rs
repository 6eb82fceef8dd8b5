//! VMs of NeonVM that run: an object with a status, and a pod on a node.

use super::neonvm::status;
use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::net::IpAddr;
use windlass_control_plane::Space;
use windlass_control_plane::neonvm::{asked, kind};

/// Objects that are made at a time.
const AT_ONCE: usize = 16;
/// The label by which VMs are deleted.
const GROUP: &str = "bench.windlass.dev/group";

/// A VM that is to be there.
pub(super) struct Vm {
    pub(super) name: String,
    /// The node of its pod, by its whole name.
    pub(super) node: String,
    /// Where its guest is reached.
    pub(super) address: IpAddr,
    /// `spec.guest` of its object.
    pub(super) guest: Value,
    /// Which VMs are deleted together.
    pub(super) group: &'static str,
    /// The agent of its node has labelled it.
    pub(super) is_labelled: bool,
}

/// Makes VMs in a namespace.
pub(super) async fn make(space: &Space<'_>, vms: impl IntoIterator<Item = Vm>) -> Result<()> {
    let made = stream::iter(vms).map(|vm| async move { make_one(space, &vm).await });
    made.buffer_unordered(AT_ONCE).try_collect().await
}

/// Deletes the VMs of a group.
pub(super) async fn delete(space: &Space<'_>, group: &str) -> Result<()> {
    let (of_group, at_once) = (
        ListParams::default().labels(&format!("{GROUP}={group}")),
        DeleteParams::default().grace_period(0),
    );
    machines(space).delete_collection(&at_once, &of_group).await?;
    space.pods().delete_collection(&at_once, &of_group).await?;
    Ok(())
}

/// The objects of a namespace.
pub(super) fn machines(space: &Space<'_>) -> Api<DynamicObject> {
    Api::namespaced_with(space.client().clone(), space.name(), &kind())
}

async fn make_one(space: &Space<'_>, vm: &Vm) -> Result<()> {
    let (machines, params) = (machines(space), PostParams::default());
    let mut labels = json!({"windlass.dev/enabled": "true", GROUP: vm.group});
    if vm.is_labelled {
        labels["windlass.dev/node"] = json!(vm.node);
    }
    let config = r#"{"scaleDown":{"cpu":"0s","memory":"0s"}}"#;
    let object = json!({
        "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
        "metadata": {
            "name": vm.name, "labels": labels, "annotations": {"windlass.dev/config": config},
        },
        "spec": {"guest": vm.guest},
    });
    let object = machines.create(&params, &serde_json::from_value(object)?).await?;
    let pod = pod(vm, &object)?;
    space.pods().create(&params, &serde_json::from_value(pod)?).await?;
    let mut shown = status(asked(&vm.guest));
    for (key, value) in
        [("podName", pod_name(vm)), ("podIP", vm.address.to_string()), ("node", vm.node.clone())]
    {
        shown[key] = json!(value);
    }
    let patch = Patch::Merge(json!({"status": shown}));
    machines.patch_status(&vm.name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn pod(vm: &Vm, object: &DynamicObject) -> Result<Value> {
    let mut labels = object.labels().clone();
    labels.insert("vm.neon.tech/name".to_owned(), vm.name.clone());
    let size = asked(&vm.guest);
    let requests = json!({"cpu": format!("{}m", size.cpu), "memory": size.memory.to_string()});
    Ok(json!({
        "metadata": {
            "name": pod_name(vm), "labels": labels, "annotations": object.annotations(),
            "ownerReferences": [{
                "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine", "name": vm.name,
                "uid": object.uid().context("no UID")?, "controller": true,
            }],
        },
        "spec": {
            "nodeName": vm.node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "neonvm-runner", "image": "none", "resources": {"requests": requests},
            }],
        },
    }))
}

fn pod_name(vm: &Vm) -> String {
    format!("{}-00001", vm.name)
}
