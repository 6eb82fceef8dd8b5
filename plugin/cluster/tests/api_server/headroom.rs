//! Headroom pods at a real API server, and a kubelet that admits and resizes as the real one does.

use crate::plane;
use crate::plugin::Plugin;
use crate::resizes;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use windlass_control_plane::space::phase_of;
use windlass_control_plane::{Amounts, Kubelet, Space};
use windlass_plugin_core::pods::{HeadroomTerms, Mode, Pool, Pools};
use windlass_testkit::wait;

const ROLE: &str = "windlass-plugin-headroom";

#[tokio::test]
async fn a_headroom_pod_holds_what_vms_may_grow_into() {
    Plugin::sharing(plane().await, async |plugin| {
        let (_kubelet, node) = shared_node(plugin).await;
        vm(plugin, "a", 3, &node).await;
        until_room(plugin, &node, 3000).await;
        let pod = only_headroom(plugin).await;
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.node_name.as_deref(), Some(&*node));
        assert_eq!(
            (spec.priority, spec.preemption_policy.as_deref()),
            (Some(1_000_000_000), Some("Never"))
        );
        let owner = &pod.owner_references()[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("ServiceAccount", Some(true)));
        assert_eq!(pod.annotations()["cluster-autoscaler.kubernetes.io/safe-to-evict"], "true");
        assert_eq!(pod.status.unwrap().qos_class.as_deref(), Some("Burstable"));
    })
    .await;
}

/// The kubelet may be slow, or deny it: before it has allocated the headroom nobody grows.
#[tokio::test]
async fn headroom_that_no_kubelet_has_admitted_is_no_room() {
    Plugin::sharing(plane().await, async |plugin| {
        let node = labelled_node(plugin).await;
        vm(plugin, "a", 3, &node).await;
        let is_made = async || !headroom_pods(plugin).await.is_empty();
        wait::until_async("the headroom pod is made", is_made).await;
        let is_known = async || books(plugin, &node)["headroom"]["cpu"] == 2000;
        wait::until_async("the books know it", is_known).await;
        assert_eq!(books(plugin, &node)["room"]["cpu"], 1000);
        let _kubelet = Kubelet::start(plugin.space.client(), &node).await;
        until_room(plugin, &node, 3000).await;
    })
    .await;
}

/// The kubelet knows of less than the API server says.
#[tokio::test]
async fn headroom_that_the_kubelet_defers_is_given_up() {
    Plugin::sharing(plane().await, async |plugin| {
        let (_kubelet, node) = shared_node(plugin).await;
        vm(plugin, "a", 2, &node).await;
        until_room(plugin, &node, 2000).await;
        let requests = json!({"cpu": "1500m", "memory": "1Gi"});
        let other = json!({"nodeName": node, "schedulerName": "none"});
        plugin.space.pod("other", requests, other).await;
        plugin.space.until_pod("other", "running", |pod| phase_of(pod) == "Running").await;
        let nodes: Api<Node> = Api::all(plugin.space.client().clone());
        let larger = Patch::Merge(json!({"status": {"allocatable": {"cpu": "8"}}}));
        nodes.patch_status(&node, &PatchParams::default(), &larger).await.unwrap();
        bound_by(plugin, "a", 4).await;
        // It asked for three, was deferred, and asks for what it has.
        let is_given_up = async || {
            let pod = only_headroom(plugin).await;
            assert!(books(plugin, &node)["room"]["cpu"].as_u64().unwrap() <= 2000);
            let requests = Amounts::requested(&pod).cpu;
            requests == 1000 && pod.metadata.generation.unwrap_or_default() >= 3
        };
        wait::until_async("the resize is given up", is_given_up).await;
        until_room(plugin, &node, 2000).await;
    })
    .await;
}

/// The room of this node: a headroom pod is made, resized and deleted.
pub(crate) async fn comes_grows_and_goes(plugin: &Plugin<'_>) {
    let (_kubelet, node) = shared_node(plugin).await;
    vm(plugin, "a", 2, &node).await;
    until_room(plugin, &node, 2000).await;
    vm(plugin, "b", 3, &node).await;
    // Two for the VMs' own requests, and what is left of four for both to grow into.
    until_room(plugin, &node, 4000).await;
    for name in ["a", "b"] {
        plugin.delete(name).await;
    }
    let is_gone = async || headroom_pods(plugin).await.is_empty();
    wait::until_async("the headroom pod is gone", is_gone).await;
}

/// The rights that we ship for the plugin's own namespace, in this one.
pub(crate) async fn own(space: &Space<'_>) {
    let (client, own) = (space.client(), space.name());
    let params = PostParams::default();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), own);
    let account = json!({"metadata": {"name": "windlass-plugin"}});
    accounts.create(&params, &serde_json::from_value(account).unwrap()).await.unwrap();
    let mut role: Role = shipped(client).await;
    role.metadata = metadata(own);
    Api::namespaced(client.clone(), own).create(&params, &role).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), "windlass");
    let mut binding = bindings.get(ROLE).await.unwrap();
    binding.metadata = metadata(own);
    Api::namespaced(client.clone(), own).create(&params, &binding).await.unwrap();
}

/// Nodes of this test that are shared, and those whose pods are resized.
pub(crate) fn pools(own: &str) -> Pools {
    let pairs = [("windlass.dev/space", own), ("pool", "shared")];
    let labels = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mode = Mode::Headroom(HeadroomTerms::default());
    let pool =
        Pool { name: "shared".to_owned(), labels: BTreeMap::from(labels), mode, watermark: None };
    Pools { pools: vec![pool, resizes::pool(own)], namespace: own.to_owned(), ..Pools::default() }
}

async fn shipped(client: &Client) -> Role {
    Api::namespaced(client.clone(), "windlass").get(ROLE).await.unwrap()
}

fn metadata(own: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    serde_json::from_value(json!({"name": ROLE, "namespace": own})).unwrap()
}

/// A node of 4 vCPUs of that pool, with a kubelet.
async fn shared_node(plugin: &Plugin<'_>) -> (Kubelet, String) {
    let node = labelled_node(plugin).await;
    (Kubelet::start(plugin.space.client(), &node).await, node)
}

async fn labelled_node(plugin: &Plugin<'_>) -> String {
    let node = plugin.space.node("shared", "4", "64Gi").await;
    let nodes: Api<Node> = Api::all(plugin.space.client().clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"pool": "shared"}}}));
    nodes.patch(&node, &PatchParams::default(), &label).await.unwrap();
    let is_shared = async || books(plugin, &node)["mode"] == "headroom";
    wait::until_async("the books know the node's pool", is_shared).await;
    node
}

/// A VM pod of one vCPU that may grow to `most`, on the node.
async fn vm(plugin: &Plugin<'_>, name: &str, most: u64, node: &str) {
    let pod = plugin.vm(name, 1).await;
    bound_by(plugin, name, most).await;
    wait::until_async("the VM is bound", async || plugin.bind(&pod, node).await.is_empty()).await;
}

async fn bound_by(plugin: &Plugin<'_>, name: &str, most: u64) {
    let size = |count: u64| json!({"cpu": count, "mem": format!("{count}Gi")});
    let bounds = json!({"min": size(1), "max": size(most)}).to_string();
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"windlass.dev/bounds": bounds}}}));
    plugin.space.pods().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn until_room(plugin: &Plugin<'_>, node: &str, milli: u64) {
    let has = async || books(plugin, node)["room"]["cpu"] == milli;
    wait::until_async(&format!("{milli}m of room"), has).await;
}

async fn only_headroom(plugin: &Plugin<'_>) -> Pod {
    let mut pods = headroom_pods(plugin).await;
    assert_eq!(pods.len(), 1);
    pods.remove(0)
}

async fn headroom_pods(plugin: &Plugin<'_>) -> Vec<Pod> {
    let labelled = ListParams::default().labels("windlass.dev/headroom=true");
    plugin.space.pods().list(&labelled).await.unwrap().items
}

pub(crate) fn books(plugin: &Plugin<'_>, node: &str) -> serde_json::Value {
    let dump = plugin.dump();
    let nodes = dump["nodes"].as_array().unwrap();
    nodes.iter().find(|it| it["name"] == node).cloned().unwrap_or_default()
}
