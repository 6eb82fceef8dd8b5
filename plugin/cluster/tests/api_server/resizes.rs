//! VMs' own pods, resized at a real API server, and a kubelet that admits and resizes as the real one does.

use crate::between::Fate;
use crate::headroom::books;
use crate::plane;
use crate::plugin::{Plugin, bounds};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use windlass_control_plane::space::{condition, phase_of};
use windlass_control_plane::{Amounts, Kubelet, Space};
use windlass_plugin_core::pods::{Mode, Pool};
use windlass_testkit::wait;

const ROLE: &str = "windlass-plugin-resize";

#[tokio::test]
async fn a_pod_is_resized_before_its_vm_grows_and_after_it_gave_room_back() {
    Plugin::sharing(plane().await, grows_and_shrinks).await;
}

/// Requests and limits are equal, and stay so: the pod keeps its QoS class.
#[tokio::test]
async fn a_guaranteed_pod_grows_with_its_limits() {
    Plugin::sharing(plane().await, async |plugin| {
        let (_kubelet, node) = node(plugin).await;
        let resources = json!({"cpu": "1", "memory": "1Gi"});
        let resources = json!({"requests": resources, "limits": resources});
        make(plugin, "vm", &node, resources, json!({})).await;
        assert_eq!(until_permitted(plugin, "vm", 1, 3).await, 3);
        let pod = plugin.space.pods().get("vm").await.unwrap();
        let limits = pod.spec.as_ref().unwrap().containers[0].resources.clone().unwrap().limits;
        assert_eq!(Amounts::of(&limits.unwrap()), Amounts::requested(&pod));
        assert_eq!(pod.status.unwrap().qos_class.as_deref(), Some("Guaranteed"));
    })
    .await;
}

/// The kubelet knows of less than the API server says.
#[tokio::test]
async fn what_the_kubelet_refuses_is_taken_back() {
    for (size, why) in [(4, "deferred"), (6, "infeasible")] {
        Plugin::sharing(plane().await, async |plugin| {
            let (_kubelet, node) = node(plugin).await;
            vm(plugin, "vm", &node).await;
            let requests = json!({"cpu": "1500m", "memory": "1Gi"});
            let other = json!({"nodeName": node, "schedulerName": "none"});
            plugin.space.pod("other", requests, other).await;
            plugin.space.until_pod("other", "running", |pod| phase_of(pod) == "Running").await;
            let nodes: Api<Node> = Api::all(plugin.space.client().clone());
            let larger = Patch::Merge(json!({"status": {"allocatable": {"cpu": "16"}}}));
            nodes.patch_status(&node, &PatchParams::default(), &larger).await.unwrap();
            let is_larger = async || books(plugin, &node)["room"]["cpu"] == 14_500;
            wait::until_async("the books know it", is_larger).await;
            assert_eq!(plugin.permit("vm", Some(1), size).await, 1, "{why}");
            let is_back = |pod: &Pod| {
                requests_of(pod) == 1000
                    && condition(pod, "PodResizePending").is_none()
                    && pod.metadata.generation >= Some(3)
            };
            plugin.space.until_pod("vm", "as it was", is_back).await;
            assert_eq!(books(plugin, &node)["not_resized"][0]["why"], why);
            wait::until_async("its room is free", async || plugin.reserved(&node) == 1000).await;
            // What fits is given after the back-off.
            assert_eq!(until_permitted(plugin, "vm", 1, 2).await, 2);
            assert_eq!(books(plugin, &node)["not_resized"], json!([]));
        })
        .await;
    }
}

/// A write that was lost on its way is for a revision that is over.
#[tokio::test]
async fn a_resize_that_comes_late_does_not_take_effect() {
    Plugin::sharing(plane().await, async |plugin| {
        let (_kubelet, node) = node(plugin).await;
        vm(plugin, "vm", &node).await;
        assert_eq!(until_permitted(plugin, "vm", 1, 3).await, 3);
        plugin.between.next_resize(Fate::IsKept);
        assert_eq!(plugin.permit("vm", Some(3), 2).await, 2);
        assert_eq!(plugin.permit("vm", Some(2), 2).await, 2);
        let is_kept = async || plugin.between.keeps();
        wait::until_async("the pod is asked to shrink", is_kept).await;
        // Before it is sent again, the pod has another revision.
        touch(plugin, "vm").await;
        assert_eq!(until_permitted(plugin, "vm", 2, 3).await, 3);
        assert_eq!(plugin.between.send_what_was_kept().await, 409);
        let pod = plugin.space.pods().get("vm").await.unwrap();
        assert_eq!(requests_of(&pod), 3000);
    })
    .await;
}

#[tokio::test]
async fn a_plugin_that_starts_in_the_middle_of_a_resize_waits_for_the_kubelet() {
    let plane = plane().await;
    let name = OnceCell::new();
    Plugin::sharing(plane, async |plugin| {
        name.set(plugin.space.name().to_owned()).unwrap();
        let (kubelet, node) = node(plugin).await;
        vm(plugin, "vm", &node).await;
        plugin.space.until_pod("vm", "running", |pod| phase_of(pod) == "Running").await;
        drop(kubelet);
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 1, "no kubelet answers");
        plugin.space.until_pod("vm", "asked to grow", |pod| requests_of(pod) == 3000).await;
    })
    .await;
    let space = Space::named(plane, name.get().unwrap()).await;
    Plugin::sharing_in(plane, space, async |plugin| {
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 1, "no kubelet answers");
        let pod = plugin.space.pods().get("vm").await.unwrap();
        let annotations = pod.metadata.annotations.unwrap();
        assert!(annotations.contains_key("windlass.dev/binding-settled"), "no late resize lands");
        let node = pod.spec.unwrap().node_name.unwrap();
        assert_eq!(plugin.reserved(&node), 3000, "the scheduler counts it, too");
        let _kubelet = Kubelet::start(plugin.space.client(), &node).await;
        assert_eq!(until_permitted(plugin, "vm", 1, 3).await, 3);
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_would_be_restarted_stays_at_what_it_requests() {
    Plugin::sharing(plane().await, async |plugin| {
        let (_kubelet, node) = node(plugin).await;
        let policy = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
        let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
        make(plugin, "vm", &node, requests, json!({"resizePolicy": policy})).await;
        assert_eq!(plugin.permit("vm", Some(1), 3).await, 1);
        let why = "the resizePolicy of its container is RestartContainer";
        assert_eq!(books(plugin, &node)["not_resized"][0]["why"], why);
    })
    .await;
}

/// A VM's pod grows and shrinks.
pub(crate) async fn grows_and_shrinks(plugin: &Plugin<'_>) {
    let (_kubelet, node) = node(plugin).await;
    vm(plugin, "resized", &node).await;
    assert_eq!(until_permitted(plugin, "resized", 1, 3).await, 3);
    let pod = plugin.space.pods().get("resized").await.unwrap();
    assert_eq!((requests_of(&pod), allocated_of(&pod)), (3000, 3000));
    assert_eq!(plugin.permit("resized", Some(3), 2).await, 2);
    assert_eq!(plugin.permit("resized", Some(2), 2).await, 2);
    let is_smaller = |pod: &Pod| requests_of(pod) == 2000 && allocated_of(pod) == 2000;
    plugin.space.until_pod("resized", "smaller", is_smaller).await;
    wait::until_async("its room is free", async || plugin.reserved(&node) == 2000).await;
}

/// The right that we ship for such nodes, in this namespace.
pub(crate) async fn own(space: &Space<'_>) {
    let binding = json!({
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [
            {"kind": "ServiceAccount", "name": "windlass-plugin", "namespace": "windlass"},
        ],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(space.client().clone(), space.name());
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

/// Nodes of this test whose pods are resized.
pub(crate) fn pool(own: &str) -> Pool {
    let pairs = [("windlass.dev/space", own), ("pool", "resized")];
    let labels = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Pool {
        name: "resized".to_owned(),
        labels: BTreeMap::from(labels),
        mode: Mode::Resize,
        watermark: None,
    }
}

/// A node of 4 vCPUs of that pool, with a kubelet.
async fn node(plugin: &Plugin<'_>) -> (Kubelet, String) {
    let node = plugin.space.node("resized", "4", "64Gi").await;
    let nodes: Api<Node> = Api::all(plugin.space.client().clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"pool": "resized"}}}));
    nodes.patch(&node, &PatchParams::default(), &label).await.unwrap();
    let is_known = async || books(plugin, &node)["mode"] == "resize";
    wait::until_async("the books know the node's pool", is_known).await;
    (Kubelet::start(plugin.space.client(), &node).await, node)
}

/// A VM pod of one vCPU that may grow to 8, on the node.
async fn vm(plugin: &Plugin<'_>, name: &str, node: &str) {
    let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
    make(plugin, name, node, requests, json!({})).await;
}

async fn make(plugin: &Plugin<'_>, name: &str, node: &str, resources: Value, more: Value) {
    let mut container = json!({"name": "vm", "image": "none", "resources": resources});
    container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let pod = json!({
        "metadata": {
            "name": name,
            "labels": {"windlass.dev/enabled": "true"},
            "annotations": {"windlass.dev/bounds": bounds(8)},
        },
        "spec": {
            "nodeName": node, "schedulerName": "none", "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    plugin.space.pods().create(&PostParams::default(), &pod).await.unwrap();
    plugin.space.until_pod(name, "running", |pod| phase_of(pod) == "Running").await;
    wait::until_async("the books know it", async || plugin.reserved(node) > 0).await;
}

/// Asks until this much is permitted, or the test's patience ends; what is.
async fn until_permitted(plugin: &Plugin<'_>, vm: &str, last: u64, size: u64) -> u64 {
    let is_permitted = async || plugin.permit(vm, Some(last), size).await == size;
    wait::until_async(&format!("{vm} may have {size}"), is_permitted).await;
    size
}

async fn touch(plugin: &Plugin<'_>, name: &str) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
    plugin.space.pods().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

fn requests_of(pod: &Pod) -> i64 {
    Amounts::requested(pod).cpu
}

fn allocated_of(pod: &Pod) -> i64 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let allocated =
        statuses.into_iter().flatten().filter_map(|one| one.allocated_resources.as_ref());
    allocated.map(|list| Amounts::of(list).cpu).sum()
}
