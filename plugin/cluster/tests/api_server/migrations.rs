//! VMs move away from a node that is too full, by NeonVM's objects; the test plays NeonVM's controller and the scheduler.

use crate::between::{Fate, MIGRATIONS};
use crate::plane_with_neonvm;
use crate::plugin::{Plugin, bounds};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_plugin_core::pods::MigrationTerms;
use windlass_testkit::wait;

/// The uid of the VM's object, as NeonVM's controller writes it into the pod.
const OBJECT: &str = "0b6d2c1e-0000-4000-8000-000000000001";
const MIGRATION: &str = "windlass-db1";

#[tokio::test]
async fn a_vm_moves_to_another_node_and_both_pods_count_meanwhile() {
    Plugin::moving(plane_with_neonvm().await, terms(), async |plugin| {
        let one = full(plugin).await;
        let two = plugin.space.node("two", "4", "64Gi").await;
        let made = migration(plugin).await;
        assert_eq!(made.data["spec"]["vmName"], "db1");
        assert_eq!(made.data["spec"]["preventMigrationToSameHost"], true);
        assert_eq!(made.owner_references()[0].uid, OBJECT);

        let (status, answer) = plugin.try_permit("db1-a", Some(2), 3).await;
        assert_eq!(
            (status, &answer["migrate"], &answer["permit"]["vCPUs"]),
            (200, &json!({}), &json!(2))
        );
        assert_eq!(plugin.try_permit("db1-a", Some(2), 1).await.0, 400, "it keeps its size");
        assert_eq!(plugin.permit("db2-a", Some(2), 1).await, 1, "others go on");

        // NeonVM makes the pod that the VM moves to; the scheduler has it bound.
        let target = plugin.unbound(neonvm("db1", "db1-b", migrated_by(&made)), "2").await;
        assert_eq!(plugin.bind(&target, &two).await, "");
        assert_eq!((plugin.reserved(&one), plugin.reserved(&two)), (4000, 2000));
        wait::until_async("it is told", async || is_told_to_stay(plugin, "db1-b").await).await;

        finish(plugin, "Succeeded").await;
        owned(plugin, "db1-b", &owner()).await;
        plugin.delete("db1-a").await;
        wait::until_async("the plugin deletes what is over", async || is_gone(plugin).await).await;
        wait::until_async("the room is free", async || plugin.reserved(&one) < 3000).await;
        let (status, answer) = plugin.try_permit("db1-b", Some(2), 3).await;
        assert_eq!((status, answer.get("migrate")), (200, None), "it may change again");
    })
    .await;
}

#[tokio::test]
async fn a_vm_whose_migration_fails_or_is_deleted_or_finds_no_node_goes_on() {
    for end in ["fails", "is deleted", "finds no node"] {
        let placed_within = match end {
            "finds no node" => Duration::from_secs(1),
            _ => terms().placed_within,
        };
        let terms = MigrationTerms { placed_within, ..terms() };
        Plugin::moving(plane_with_neonvm().await, terms, async |plugin| {
            full(plugin).await;
            plugin.space.node("two", "4", "64Gi").await;
            let made = migration(plugin).await;
            match end {
                "fails" => finish(plugin, "Failed").await,
                "is deleted" => {
                    migrations(plugin).delete(MIGRATION, &DeleteParams::default()).await.unwrap();
                }
                _ => drop(plugin.unbound(neonvm("db1", "db1-b", migrated_by(&made)), "2").await),
            }
            wait::until_async("it is gone", async || is_gone(plugin).await).await;
            let grows = async || {
                let (status, answer) = plugin.try_permit("db1-a", Some(2), 1).await;
                status == 200 && answer.get("migrate").is_none()
            };
            wait::until_async("the VM may change again", grows).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_migration_whose_answer_was_lost_is_there_once_and_every_right_is_used() {
    let terms = MigrationTerms { rests: Duration::from_secs(1), ..terms() };
    Plugin::moving(plane_with_neonvm().await, terms, async |plugin| {
        // Another object has the name.
        let other = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachineMigration",
            "metadata": {"name": MIGRATION}, "spec": {"vmName": "other"},
        });
        let other = serde_json::from_value(other).unwrap();
        let other = migrations(plugin).create(&PostParams::default(), &other).await.unwrap();
        full(plugin).await;
        plugin.space.node("two", "4", "64Gi").await;
        let is_read = async || used(plugin).contains("get");
        wait::until_async("it is asked for, and the other is read", is_read).await;
        plugin.between.next_migration(Fate::IsNotAnswered);
        migrations(plugin).delete(MIGRATION, &DeleteParams::default()).await.unwrap();
        let is_made = async || {
            let made = migrations(plugin).get_opt(MIGRATION).await.unwrap();
            made.is_some_and(|made| made.uid() != other.uid())
        };
        wait::until_async("it is made once the name is free", is_made).await;
        let told = async || is_told_to_stay(plugin, "db1-a").await;
        wait::until_async("the VM keeps its size", told).await;
        finish(plugin, "Failed").await;
        wait::until_async("it is deleted", async || is_gone(plugin).await).await;
        assert_eq!(plugin.between.denied(), Vec::<String>::new());
        let roles: Api<ClusterRole> = Api::all(plugin.space.client().clone());
        let rules = roles.get("windlass-plugin-migration").await.unwrap().rules.unwrap();
        let granted: BTreeSet<String> = rules.into_iter().flat_map(|rule| rule.verbs).collect();
        assert_eq!(used(plugin), granted);
    })
    .await;
}

/// One at a time; what is asked for once is not asked for again in a test.
fn terms() -> MigrationTerms {
    let hour = Duration::from_secs(3600);
    MigrationTerms { per_node: 1, in_all: 100, rests: hour, placed_within: hour }
}

/// A node whose four vCPUs two VMs have, one of which may be moved.
async fn full(plugin: &Plugin<'_>) -> String {
    let one = plugin.node().await;
    let mut stays = neonvm("db2", "db2-a", owner());
    stays["labels"].as_object_mut().unwrap().remove("windlass.dev/may-move");
    for (pod, metadata) in [("db1-a", neonvm("db1", "db1-a", owner())), ("db2-a", stays)] {
        plugin.on(&one, metadata).await;
        let is_known = async || plugin.try_permit(pod, None, 1).await.0 == 200;
        wait::until_async("the books know the pod", is_known).await;
        assert_eq!(plugin.permit(pod, Some(1), 2).await, 2);
    }
    one
}

/// A pod that runs a VM of NeonVM.
fn neonvm(vm: &str, pod: &str, owner: Value) -> Value {
    json!({
        "name": pod,
        "labels": {"vm.neon.tech/name": vm, "windlass.dev/may-move": "true"},
        "annotations": {"windlass.dev/bounds": bounds(4)},
        "ownerReferences": [owner],
    })
}

fn owner() -> Value {
    json!({
        "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine", "name": "db1", "uid": OBJECT,
        "controller": true,
    })
}

fn migrated_by(migration: &DynamicObject) -> Value {
    json!({
        "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachineMigration",
        "name": migration.name_any(), "uid": migration.uid(), "controller": true,
    })
}

fn migrations(plugin: &Plugin<'_>) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("vm.neon.tech", "v1", "VirtualMachineMigration");
    let kind = ApiResource::from_gvk_with_plural(&kind, MIGRATIONS);
    Api::namespaced_with(plugin.space.client().clone(), plugin.space.name(), &kind)
}

/// The migration, once it is there.
async fn migration(plugin: &Plugin<'_>) -> DynamicObject {
    let (all, mut found) = (migrations(plugin), None);
    wait::until_async("a migration is made", async || {
        found = all.get_opt(MIGRATION).await.unwrap();
        found.is_some()
    })
    .await;
    found.unwrap()
}

async fn is_gone(plugin: &Plugin<'_>) -> bool {
    migrations(plugin).get_opt(MIGRATION).await.unwrap().is_none()
}

/// NeonVM's controller says how it ended.
async fn finish(plugin: &Plugin<'_>, phase: &str) {
    let status = Patch::Merge(json!({"status": {"phase": phase}}));
    let params = PatchParams::default();
    migrations(plugin).patch_status(MIGRATION, &params, &status).await.unwrap();
}

/// NeonVM's controller gives a pod another owner.
async fn owned(plugin: &Plugin<'_>, pod: &str, owner: &Value) {
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
    let _: Pod = plugin.space.pods().patch(pod, &PatchParams::default(), &patch).await.unwrap();
}

/// Whether the VM's agent is told that it moves.
async fn is_told_to_stay(plugin: &Plugin<'_>, pod: &str) -> bool {
    let (status, answer) = plugin.try_permit(pod, Some(2), 2).await;
    status == 200 && answer["migrate"] == json!({})
}

/// The verbs that were used on migrations.
fn used(plugin: &Plugin<'_>) -> BTreeSet<String> {
    let used = plugin.between.used().into_iter();
    used.filter(|(resource, _)| resource == MIGRATIONS).map(|(_, verb)| verb).collect()
}
