//! What Kubernetes' own controllers do with VM pods and with headroom pods.

use crate::vms::Vms;
use crate::{Cluster, SCHEDULER};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_control_plane::space::node_of;
use windlass_control_plane::{Controllers, Kubelet};
use windlass_testkit::wait;

#[tokio::test]
async fn pods_of_a_deployment_are_placed_again_and_headroom_pods_are_no_garbage() {
    let cluster = Cluster::start().await;
    let _controllers = Controllers::start(&cluster.plane, &Controllers::WORKLOADS).await;
    let vms = Vms::new(&cluster).await;
    let (one, plugin) = (vms.space.node("one", "8", "64Gi").await, &cluster.plugin);
    let nodes: Api<Node> = Api::all(vms.space.client().clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"pool": "shared"}}}));
    nodes.patch(&one, &PatchParams::default(), &label).await.unwrap();
    wait::until("its pool is known", || plugin.node(&one)["mode"] == "headroom");
    let _kubelet = Kubelet::start(vms.space.client(), &one).await;

    let deployments: Api<Deployment> =
        Api::namespaced(vms.space.client().clone(), vms.space.name());
    let deployment = serde_json::from_value(deployment(vms.space.name())).unwrap();
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    let first = placed(&vms, &[]).await;
    vms.delete(&first[0]).await;
    let second = placed(&vms, &first[..1]).await;
    assert!(second.contains(&first[1]), "the other one stays: {first:?}, {second:?}");
    wait::until("both are in the books", || plugin.node(&one)["pods"] == 3);

    // The collector knows the headroom pod, and takes what has no owner away.
    let own: Api<Pod> = Api::namespaced(vms.space.client().clone(), "windlass");
    let headroom = own.get(&format!("headroom-{one}")).await.unwrap();
    assert_eq!(headroom.owner_references()[0].kind, "ServiceAccount");
    let maps: Api<ConfigMap> = Api::namespaced(vms.space.client().clone(), "windlass");
    let orphan = json!({"metadata": {"name": "orphan", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ServiceAccount", "name": "nobody", "uid": "none",
    }]}});
    let orphan = serde_json::from_value(orphan).unwrap();
    maps.create(&PostParams::default(), &orphan).await.unwrap();
    let is_gone = async || maps.get_opt("orphan").await.unwrap().is_none();
    wait::until_async("what has no owner is gone", is_gone).await;
    let after = own.get(&headroom.name_any()).await.unwrap();
    assert_eq!((after.uid(), after.metadata.deletion_timestamp), (headroom.uid(), None));
}

/// The names of the deployment's pods, once two others than these are on a node.
async fn placed(vms: &Vms<'_>, but: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    wait::until_async("two pods are placed", async || {
        let pods = vms.space.pods().list(&ListParams::default()).await.unwrap();
        let placed = pods.iter().filter(|pod| node_of(pod).is_some());
        names = placed.map(ResourceExt::name_any).filter(|name| !but.contains(name)).collect();
        names.len() == 2
    })
    .await;
    names
}

/// Two VMs of one vCPU, which may grow to two.
fn deployment(space: &str) -> serde_json::Value {
    let size = |count: u64| json!({"cpu": count, "mem": format!("{count}Gi")});
    let bounds = json!({"min": size(1), "max": size(2)}).to_string();
    let requests = json!({"cpu": "1", "memory": "1Gi"});
    json!({
        "metadata": {"name": "vms"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "vms"}},
            "template": {
                "metadata": {
                    "labels": {"app": "vms", "windlass.dev/enabled": "true"},
                    "annotations": {"windlass.dev/bounds": bounds},
                },
                "spec": {
                    "schedulerName": SCHEDULER,
                    "nodeSelector": {"windlass.dev/space": space},
                    "terminationGracePeriodSeconds": 0,
                    "containers": [
                        {"name": "vm", "image": "none", "resources": {"requests": requests}},
                    ],
                },
            },
        },
    })
}
