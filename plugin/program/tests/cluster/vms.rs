//! Pods that are VMs, and pods that are none, of one test.

use crate::{Cluster, SCHEDULER};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use windlass_control_plane::space::{condition, node_of};
use windlass_control_plane::{ControlPlane, Space};
use windlass_testkit::wait;

/// A namespace and nodes of a test's own, and the pods that it makes there.
pub(crate) struct Vms<'a> {
    pub(crate) space: Space<'a>,
}

impl<'a> Vms<'a> {
    pub(crate) async fn new(cluster: &'a Cluster) -> Self {
        Self::of(&cluster.plane).await
    }

    /// The same, in this control plane.
    pub(crate) async fn of(plane: &'a ControlPlane) -> Self {
        Self { space: Space::new(plane).await }
    }

    /// The same namespace, with what is there already.
    pub(crate) async fn in_space(cluster: &'a Cluster, name: &str) -> Self {
        Self { space: Space::named(&cluster.plane, name).await }
    }

    /// Makes a pod that is a VM: it requests one vCPU and 1 GiB, and may grow to `most` of each.
    pub(crate) async fn vm(&self, name: &str, most: u64) {
        let selector = json!({"windlass.dev/space": self.space.name()});
        self.make(name, 1, most, SCHEDULER, selector).await;
    }

    /// The same, which requests `least` of each and can run on this node alone.
    pub(crate) async fn vm_on(&self, name: &str, least: u64, most: u64, node: &str) {
        self.make(name, least, most, SCHEDULER, json!({"kubernetes.io/hostname": node})).await;
    }

    /// Makes a VM of one vCPU that no scheduler looks at; what a scheduler would send to bind it to this node.
    pub(crate) async fn left_alone(&self, name: &str, node: &str) -> String {
        let pod = self.make(name, 1, 1, "nobody", json!({})).await;
        let (uid, namespace) = (pod.metadata.uid, self.space.name());
        json!({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node}).to_string()
    }

    async fn make(
        &self,
        name: &str,
        least: u64,
        most: u64,
        scheduler: &str,
        selector: Value,
    ) -> Pod {
        let size = |count: u64| json!({"cpu": count, "mem": format!("{count}Gi")});
        let bounds = json!({"min": size(least), "max": size(most)}).to_string();
        let requests = json!({"cpu": least.to_string(), "memory": format!("{least}Gi")});
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {"windlass.dev/enabled": "true"},
                "annotations": {"windlass.dev/bounds": bounds},
            },
            "spec": {
                "schedulerName": scheduler,
                "nodeSelector": selector,
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "vm", "image": "none", "resources": {"requests": requests},
                }],
            },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.space.pods().create(&PostParams::default(), &pod).await.unwrap()
    }

    /// The node that a pod is bound to, once it is.
    pub(crate) async fn bound(&self, name: &str) -> String {
        let pod = self.space.until_pod(name, "bound", |pod| node_of(pod).is_some()).await;
        node_of(&pod).unwrap().to_owned()
    }

    /// Waits until a pod has an annotation.
    pub(crate) async fn is_annotated(&self, name: &str, key: &str) {
        let has =
            |pod: &Pod| pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(key));
        self.space.until_pod(name, key, has).await;
    }

    /// The vCPUs of the recorded ceiling of a VM.
    pub(crate) async fn ceiling(&self, name: &str) -> Option<u64> {
        ceiling_of(&self.space.pods().get(name).await.unwrap())
    }

    /// Waits until the scheduler has refused a pod.
    pub(crate) async fn refused(&self, name: &str) {
        let refused =
            |pod: &_| condition(pod, "PodScheduled").is_some_and(|it| it.status == "False");
        self.space.until_pod(name, "refused", refused).await;
    }

    /// Waits until the scheduler has bound or refused a pod, and gives it.
    pub(crate) async fn decided(&self, name: &str) -> Pod {
        let is_decided = |pod: &Pod| {
            let refused = |it: &PodCondition| it.status == "False";
            node_of(pod).is_some() || condition(pod, "PodScheduled").is_some_and(refused)
        };
        self.space.until_pod(name, "bound or refused", is_decided).await
    }

    /// How many pods are bound to a node; none while the API server does not answer.
    pub(crate) async fn count_bound(&self, node: &str) -> usize {
        let pods = self.space.pods().list(&ListParams::default()).await;
        let pods = pods.map(|list| list.items).unwrap_or_default();
        pods.iter().filter(|pod| node_of(pod) == Some(node)).count()
    }

    /// Deletes a pod, as its kubelet does at the end.
    pub(crate) async fn delete(&self, name: &str) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.space.pods().delete(name, &now).await.unwrap();
    }

    /// Deletes all pods, and waits until none is left.
    pub(crate) async fn delete_all(&self) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let (pods, all) = (self.space.pods(), ListParams::default());
        pods.delete_collection(&now, &all).await.unwrap();
        let none = async || pods.list(&all).await.unwrap().items.is_empty();
        wait::until_async("no pod is left", none).await;
    }
}

/// The vCPUs of a pod's recorded ceiling.
pub(crate) fn ceiling_of(pod: &Pod) -> Option<u64> {
    let text = pod.metadata.annotations.as_ref()?.get("windlass.dev/ceiling")?;
    let ceiling: Value = serde_json::from_str(text).unwrap();
    ceiling["cpu"].as_str()?.parse().ok()
}
