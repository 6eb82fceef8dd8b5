//! The law that is looked after in every look at a cluster: the VMs of a node have no more than the node has.
//!
//! A VM counts with the largest of what its pod requests, what is allocated to that, what the object's spec asks for, and what its
//! status shows.

use super::{Cluster, NODE};
use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;
use std::collections::BTreeMap;
use windlass_control_plane::space::{node_of, phase_of};
use windlass_control_plane::{Amounts, neonvm};

/// The label of pods that are run for an object of NeonVM, with its name.
const OF_OBJECT: &str = "vm.neon.tech/name";

// === impl Cluster ===

impl Cluster {
    /// Looks whether the VMs of each node fit it.
    ///
    /// # Errors
    /// Those of a node do not.
    pub async fn within_nodes(&self) -> Result<()> {
        let all = ListParams::default();
        let machines = self.machines().list(&all).await?;
        let pods = self.space.pods().list(&all).await?;
        let mut taken: BTreeMap<&str, Amounts> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| !matches!(phase_of(pod), "Succeeded" | "Failed")) {
            let Some(node) = node_of(pod) else { continue };
            let name = pod.labels().get(OF_OBJECT);
            let machine = machines.iter().find(|machine| Some(&machine.name_any()) == name);
            let of_object = machine.map(of_machine).unwrap_or_default();
            let here = Amounts::requested(pod).max(allocated(pod)).max(of_object);
            let sum = taken.entry(node).or_default();
            *sum = *sum + here;
        }
        let whole = amounts(NODE.0, NODE.1)?;
        for (node, taken) in taken {
            let fits = taken.max(whole) == whole;
            ensure!(fits, "the VMs of {node} have {taken:?} of {whole:?}");
        }
        Ok(())
    }
}

/// What the object of a VM says, the larger of what is asked for and what is there.
fn of_machine(machine: &DynamicObject) -> Amounts {
    let status = &machine.data["status"];
    let text = |name: &str| status[name].as_str().unwrap_or("0");
    let has = amounts(text("cpus"), text("memorySize")).unwrap_or_default();
    neonvm::asked(&machine.data["spec"]["guest"]).max(has)
}

/// What the kubelet has allocated to the containers of a pod.
fn allocated(pod: &Pod) -> Amounts {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let all = containers.into_iter().flatten();
    all.filter_map(|container| container.allocated_resources.as_ref())
        .fold(Amounts::default(), |sum, container| sum + Amounts::of(container))
}

fn amounts(cpu: &str, memory: &str) -> Result<Amounts> {
    Ok(Amounts::of(&serde_json::from_value(json!({"cpu": cpu, "memory": memory}))?))
}
