//! VMs of NeonVM: their ceilings are on their VirtualMachine objects; the test plays NeonVM's controller.

use crate::between::{Fate, OBJECTS};
use crate::plugin::{Plugin, bounds};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokio::sync::OnceCell;
use windlass_control_plane::{ControlPlane, Space, neonvm};
use windlass_protocol::annotations::CEILING;
use windlass_protocol::pod::Ceiling;
use windlass_testkit::wait;

const VM: &str = "db1";
const POD: &str = "db1-a";

#[tokio::test]
async fn the_ceiling_of_a_vm_is_on_its_object_before_its_agent_is_told() {
    following(async |plugin| {
        let (node, pod) = placed(plugin).await;
        assert_eq!(annotation(plugin.space.pods().get(POD).await.unwrap().annotations()), None);
        assert_eq!(plugin.permit(POD, None, 1).await, 1);
        assert_eq!(plugin.permit(POD, Some(1), 3).await, 3);
        let recorded = ceiling(plugin).await.unwrap();
        assert!(recorded.size.cpu.milli() >= 3000, "{recorded:?}");
        assert_eq!(annotation(plugin.space.pods().get(POD).await.unwrap().annotations()), None);
        assert_eq!(plugin.permit(POD, Some(3), 4).await, 4, "within it");
        assert_eq!(plugin.reserved(&node), 4000);
        assert_eq!(plugin.place_of(&pod).await, Some(node));
    })
    .await;
}

#[tokio::test]
async fn a_ceiling_that_somebody_changed_or_whose_answer_was_lost_is_read_and_written_again() {
    following(async |plugin| {
        placed(plugin).await;
        assert_eq!(plugin.permit(POD, None, 1).await, 1);
        assert_eq!(plugin.permit(POD, Some(1), 2).await, 2);
        edit(plugin, json!({"metadata": {"annotations": {CEILING: null}}})).await;
        let is_gone = async || ceiling(plugin).await.is_none();
        wait::until_async("a person removed it", is_gone).await;
        plugin.between.next_ceiling(Fate::ComesAfterAChange);
        let grown = async || plugin.permit(POD, Some(2), 4).await == 4;
        wait::until_async("it grows all the same", grown).await;
        assert!(ceiling(plugin).await.unwrap().size.cpu.milli() >= 4000);
    })
    .await;
}

#[tokio::test]
async fn a_restarted_plugin_counts_with_the_ceiling_and_with_what_the_vm_has() {
    let plane = plane().await;
    let space = Space::new(plane).await;
    let name = space.name().to_owned();
    let mut node = None;
    Plugin::following_objects(plane, space, async |plugin| {
        node = Some(placed(plugin).await.0);
        assert_eq!(plugin.permit(POD, None, 1).await, 1);
        assert_eq!(plugin.permit(POD, Some(1), 2).await, 2);
    })
    .await;
    let node = node.unwrap();
    let again = Space::named(plane, &name).await;
    Plugin::following_objects(plane, again, async |plugin| {
        let recorded = ceiling(plugin).await.unwrap().size.cpu.milli();
        assert!((2000..4000).contains(&recorded), "{recorded}");
        assert_eq!(plugin.reserved(&node), recorded, "no less, and no maximum of 4");
        status(plugin, json!({"cpus": 4})).await;
        let counts = async || plugin.reserved(&node) == 4000;
        wait::until_async("what the VM has counts", counts).await;
        status(plugin, json!({"cpus": 2})).await;
        assert_eq!(plugin.permit(POD, Some(2), 2).await, 2);
        let counts = async || plugin.reserved(&node) == 2000;
        wait::until_async("its agent has spoken", counts).await;
    })
    .await;
}

#[tokio::test]
async fn a_vm_whose_object_is_gone_grows_no_more() {
    following(async |plugin| {
        let (node, _) = placed(plugin).await;
        assert_eq!(plugin.permit(POD, None, 1).await, 1);
        vms(plugin).delete(VM, &DeleteParams::default()).await.unwrap();
        let permit = plugin.permit(POD, Some(1), 4).await;
        assert_eq!(permit, 2, "as far as the last ceiling goes: no other can be recorded");
        assert_eq!(plugin.reserved(&node), 2000);
    })
    .await;
}

#[tokio::test]
async fn a_ceiling_that_keeps_the_next_pod_of_a_vm_from_a_place_is_lowered() {
    following(async |plugin| {
        let (node, _) = placed(plugin).await;
        assert_eq!(plugin.permit(POD, None, 1).await, 1);
        assert_eq!(plugin.permit(POD, Some(1), 4).await, 4);
        let other = plugin.unbound(json!({"name": "other"}), "2").await;
        plugin.space.pods().delete(POD, &DeleteParams::default().grace_period(0)).await.unwrap();
        let is_bound = async || plugin.bind(&other, &node).await.is_empty();
        wait::until_async("the first pod is gone", is_bound).await;

        let next = plugin.unbound(pod_of_vm("db1-b"), "1").await;
        status(plugin, json!({"podName": "db1-b", "cpus": 1, "memorySize": "1Gi"})).await;
        let refused = async || plugin.bind(&next, &node).await.contains("4 of cpu asked");
        wait::until_async("refused with the ceiling of its VM", refused).await;
        let is_bound = async || plugin.bind(&next, &node).await.is_empty();
        wait::until_async("placed with what it starts with", is_bound).await;
        assert_eq!(ceiling(plugin).await.unwrap().size.cpu.milli(), 1000);
        assert_eq!(plugin.reserved(&node), 1000);
    })
    .await;
}

#[tokio::test]
async fn every_right_to_neonvms_objects_is_used_and_nothing_is_denied() {
    following(async |plugin| {
        placed(plugin).await;
        assert_eq!(plugin.permit(POD, None, 1).await, 1);
        assert_eq!(plugin.permit(POD, Some(1), 3).await, 3);
        plugin.between.next_ceiling(Fate::ComesAfterAChange);
        assert_eq!(plugin.permit(POD, Some(3), 4).await, 4);
        assert_eq!(plugin.between.denied(), Vec::<String>::new());
        let roles: Api<ClusterRole> = Api::all(plugin.space.client().clone());
        let rules = roles.get("windlass-plugin-neonvm").await.unwrap().rules.unwrap();
        let granted: BTreeSet<String> = rules.into_iter().flat_map(|rule| rule.verbs).collect();
        let used = plugin.between.used().into_iter().filter(|(resource, _)| resource == OBJECTS);
        assert_eq!(used.map(|(_, verb)| verb).collect::<BTreeSet<_>>(), granted);
    })
    .await;
}

/// One of its own: the plugin has more rights there.
async fn plane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    let start = async || {
        let plane = ControlPlane::start().await;
        for folder in ["../../deploy/kustomize/plugin", "../../deploy/kustomize/plugin-neonvm"] {
            plane.apply(Path::new(folder)).await;
        }
        neonvm::kinds(&plane).await;
        plane
    };
    PLANE.get_or_init(start).await
}

async fn following(test: impl AsyncFnOnce(&Plugin<'_>)) {
    let plane = plane().await;
    let space = Space::new(plane).await;
    Plugin::following_objects(plane, space, test).await;
}

/// A VM that may have four vCPUs: its object, and its pod, bound to a node of four.
async fn placed(plugin: &Plugin<'_>) -> (String, Pod) {
    let node = plugin.node().await;
    let object = json!({
        "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine", "metadata": {"name": VM},
        "spec": {"guest": {
            "cpus": {"min": 1, "max": 4, "use": 1},
            "memorySlotSize": "1Gi", "memorySlots": {"min": 1, "max": 4, "use": 1},
        }},
    });
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    vms(plugin).create(&PostParams::default(), &object).await.unwrap();
    status(plugin, json!({"podName": POD, "cpus": 1, "memorySize": "1Gi"})).await;
    let pod = plugin.unbound(pod_of_vm(POD), "1").await;
    assert_eq!(plugin.bind(&pod, &node).await, "");
    (node, pod)
}

/// The metadata of a pod of the VM.
fn pod_of_vm(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"vm.neon.tech/name": VM},
        "annotations": {"windlass.dev/bounds": bounds(4)},
    })
}

/// NeonVM's controller says this of the VM.
async fn status(plugin: &Plugin<'_>, status: Value) {
    let (patch, params) = (Patch::Merge(json!({"status": status})), PatchParams::default());
    vms(plugin).patch_status(VM, &params, &patch).await.unwrap();
}

/// A person changes the object.
async fn edit(plugin: &Plugin<'_>, change: Value) {
    vms(plugin).patch(VM, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

async fn ceiling(plugin: &Plugin<'_>) -> Option<Ceiling> {
    annotation(vms(plugin).get(VM).await.unwrap().annotations())
}

fn annotation(annotations: &BTreeMap<String, String>) -> Option<Ceiling> {
    Ceiling::decode(annotations.get(CEILING)?).ok()
}

fn vms(plugin: &Plugin<'_>) -> Api<DynamicObject> {
    let client: Client = plugin.space.client().clone();
    let kind = GroupVersionKind::gvk("vm.neon.tech", "v1", "VirtualMachine");
    let kind = ApiResource::from_gvk_with_plural(&kind, OBJECTS);
    Api::namespaced_with(client, plugin.space.name(), &kind)
}
