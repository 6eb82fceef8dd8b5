//! A migration of a VM as the client of the API server lists and watches it: NeonVM's object.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use windlass_kit_kubernetes::object;
use windlass_kit_kubernetes::objects::Read;
use windlass_plugin_core::pods::Migration;
use windlass_protocol::VmName;
use windlass_protocol::config::Problem;

/// A migration of a VM, read from what the API server sends.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "MigrationWire")]
pub(crate) struct MigrationObject {
    meta: ObjectMeta,
    pub(crate) migration: Migration,
}

/// The label of a migration that the plugin made.
pub(crate) const OURS: &str = "windlass.dev/migration";

#[derive(Deserialize)]
struct MigrationWire {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: MigrationSpec,
    #[serde(default)]
    status: Option<MigrationStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MigrationSpec {
    #[serde(default)]
    vm_name: String,
}

#[derive(Deserialize)]
struct MigrationStatus {
    #[serde(default)]
    phase: String,
}

impl From<MigrationWire> for MigrationObject {
    fn from(wire: MigrationWire) -> Self {
        let MigrationWire { metadata: meta, spec, status } = wire;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let named = |name: String| VmName { namespace: namespace.clone(), name };
        let phase = status.map(|status| status.phase).unwrap_or_default();
        let ours = meta.labels.as_ref().and_then(|labels| labels.get(OURS));
        let migration = Migration {
            name: named(meta.name.clone().unwrap_or_default()),
            uid: meta.uid.clone().unwrap_or_default(),
            vm: named(spec.vm_name),
            is_ours: ours.is_some_and(|word| word == "true"),
            is_over: phase == "Succeeded" || phase == "Failed",
        };
        Self { meta, migration }
    }
}

impl Read for MigrationObject {
    type Kept = Migration;

    fn problem(&self) -> Option<&Problem> {
        None
    }

    fn kept(self) -> Migration {
        self.migration
    }
}

object!(
    MigrationObject,
    NamespaceResourceScope,
    "vm.neon.tech",
    "VirtualMachineMigration",
    "virtualmachinemigrations"
);
