//! A pod as the agent of its node needs it: with what people say of how its VM is scaled, and how the VM is reached.

use super::Pod;
use super::wire::PodWire;
use crate::BadBody;
use crate::config::Problem;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The name of the pod's `emptyDir` in which a VM of QEMU has the monitor that is the agent's.
pub const MONITOR: &str = "windlass";

/// A pod of an agent's node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "super::wire::PodWire")]
pub struct NodePod {
    /// The pod.
    pub pod: Pod,
    /// What people say of how its VM is scaled, among others; nothing of a pod that is no VM.
    pub annotations: BTreeMap<String, String>,
    /// The pod's address, at which the guest's informant is reached.
    pub address: Option<IpAddr>,
    /// Whether it has the volume [`MONITOR`].
    pub has_monitor: bool,
    /// What is invalid of the fields above.
    pub problems: Vec<Problem>,
}

// === impl NodePod ===

impl TryFrom<PodWire> for NodePod {
    type Error = BadBody;

    fn try_from(wire: PodWire) -> Result<Self, BadBody> {
        let said = wire.metadata.as_ref().and_then(|metadata| metadata.annotations.clone());
        let address = wire.status.as_ref().and_then(|status| status.pod_ip.clone());
        let volumes = wire.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
        let has_monitor = volumes
            .unwrap_or_default()
            .iter()
            .any(|volume| volume.name.as_deref() == Some(MONITOR) && volume.empty_dir.is_some());
        let pod = Pod::try_from(wire)?;
        let is_vm = pod.vm.as_ref().is_some_and(|vm| vm.object == pod.name);
        let mut problems = Vec::new();
        let address = address.filter(|text| !text.is_empty()).and_then(|text| {
            let invalid = || Problem::new("status.podIP", &text, "must be an IP address");
            text.parse().map_err(|_| problems.push(invalid())).ok()
        });
        let annotations = said.filter(|_| is_vm).unwrap_or_default();
        Ok(Self { pod, annotations, address, has_monitor, problems })
    }
}
