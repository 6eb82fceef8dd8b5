//! VMs of a cluster: made, changed, moved and deleted as people do it.

use super::{Cluster, EVERY, LIMIT, Look, MIB, OVERHEAD, RESIZED, SCHEDULER, SLOT};
use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::time::Instant;
use windlass_control_plane::neonvm;

/// A VM gives back soon what it needs no more.
const GIVES_BACK_SOON: &str = r#"{"scaleDown":{"cpu":"2s","memory":"2s"}}"#;

/// The annotation by which a VM has other settings than the defaults.
const CONFIG: &str = "windlass.dev/config";

/// What may be different of two VMs.
#[derive(Clone, Copy)]
struct Wish<'a> {
    /// The least CPU, in steps of which it goes.
    least: &'a str,
    /// The node that it is to be on.
    node: Option<&'a str>,
    has_defaults: bool,
}

/// A VM of which nothing was said.
const PLAIN: Wish<'_> = Wish { least: "1", node: None, has_defaults: false };

// === impl Cluster ===

impl Cluster {
    /// Makes a VM of one vCPU and 256 MiB that may have four vCPUs and 1.25 GiB, and returns once it runs. It gives back soon what
    /// it needs no more.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm(&self, name: &str) -> Result<Look> {
        self.make(name, PLAIN).await
    }

    /// The same, which may go down to this much CPU, and goes in steps of it.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm_from(&self, name: &str, least: &str) -> Result<Look> {
        self.make(name, Wish { least, ..PLAIN }).await
    }

    /// The same, on this node.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm_on(&self, name: &str, node: &str) -> Result<Look> {
        self.make(name, Wish { node: Some(node), ..PLAIN }).await
    }

    /// The same, of whose settings nothing is said.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm_with_defaults(&self, name: &str, node: &str) -> Result<Look> {
        self.make(name, Wish { node: Some(node), has_defaults: true, ..PLAIN }).await
    }

    async fn make(&self, name: &str, wish: Wish<'_>) -> Result<Look> {
        let object = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
            "metadata": {
                "name": name,
                "labels": {"autoscaling.neon.tech/enabled": "true"},
                "annotations": wish.annotations(),
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": self.selector(wish),
                "guest": {
                    "cpus": {"min": wish.least, "max": 4, "use": 1},
                    "memorySlotSize": format!("{}Mi", SLOT / MIB),
                    "memorySlots": {"min": 1, "max": 5, "use": 1},
                },
            },
        });
        let object = serde_json::from_value(object)?;
        self.machines().create(&PostParams::default(), &object).await?;
        self.until(name, "a guest that runs", |look| {
            look.object["status"]["phase"] == "Running" && look.inside.is_some()
        })
        .await
    }

    /// Makes a node of the test one whose VMs' own pods are resized.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn resizes_on(&self, node: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.space.client().clone());
        let labels = Patch::Merge(json!({"metadata": {"labels": {RESIZED: "true"}}}));
        nodes.patch(&self.whole(node), &PatchParams::default(), &labels).await?;
        Ok(())
    }

    /// Makes a pod that is a VM, as [`Cluster::vm`] makes an object, and returns once its guest runs. Its container has what the VM
    /// has and what QEMU needs for itself.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn pod_vm(&self, name: &str) -> Result<()> {
        self.make_pod(name, PLAIN).await
    }

    /// The same, on this node, and nothing is said of its settings.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn pod_vm_with_defaults(&self, name: &str, node: &str) -> Result<()> {
        self.make_pod(name, Wish { node: Some(node), has_defaults: true, ..PLAIN }).await
    }

    async fn make_pod(&self, name: &str, wish: Wish<'_>) -> Result<()> {
        let bounds = r#"{"min":{"cpu":1,"mem":"256Mi"},"max":{"cpu":4,"mem":"1280Mi"}}"#;
        let (cpu, mib) = OVERHEAD;
        let mut annotations = wish.annotations();
        annotations["windlass.dev/bounds"] = json!(bounds);
        annotations["windlass.dev/overhead"] =
            json!(format!(r#"{{"cpu":"{cpu}m","memory":"{mib}Mi"}}"#));
        let size = json!({"cpu": format!("{}m", 1000 + cpu), "memory": format!("{}Mi", 256 + mib)});
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {"windlass.dev/enabled": "true"},
                "annotations": annotations,
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": self.selector(wish),
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "vm", "image": "none",
                    "resources": {"requests": size, "limits": size},
                    "volumeMounts": [{"name": "windlass", "mountPath": "/run/windlass"}],
                }],
                "volumes": [{"name": "windlass", "emptyDir": {}}],
            },
        });
        let pod = serde_json::from_value(pod)?;
        self.space.pods().create(&PostParams::default(), &pod).await?;
        self.until_pod(name, "a guest that runs", |_, online| online.is_some()).await
    }

    /// Moves a VM to another node, and returns once it runs there.
    ///
    /// # Errors
    /// It does not, in time.
    pub async fn moves(&self, name: &str) -> Result<Look> {
        let from = self.look(name).await?.object["status"]["node"].clone();
        let migration = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachineMigration",
            "metadata": {"name": name}, "spec": {"vmName": name},
        });
        let client = self.space.client().clone();
        let migrations: Api<DynamicObject> =
            Api::namespaced_with(client, self.space.name(), &neonvm::migration_kind());
        let migration = serde_json::from_value(migration)?;
        migrations.create(&PostParams::default(), &migration).await?;
        self.until(name, "another node", |look| {
            let status = &look.object["status"];
            status["phase"] == "Running" && status["node"] != from
        })
        .await
    }

    /// Changes the object of a VM.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.machines().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes the object of a VM, and returns once its guest is gone.
    ///
    /// # Errors
    /// The API server refuses it, or the guest does not go in time.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.machines().delete(name, &DeleteParams::default()).await?;
        self.until_ended(name).await
    }

    /// Deletes a pod that is a VM, and returns once its guest is gone.
    ///
    /// # Errors
    /// The API server refuses it, or the guest does not go in time.
    pub async fn delete_pod(&self, name: &str) -> Result<()> {
        self.space.pods().delete(name, &DeleteParams::default()).await?;
        self.until_ended(name).await
    }

    async fn until_ended(&self, name: &str) -> Result<()> {
        let start = Instant::now();
        while self.guests.get(name).is_some() {
            ensure!(start.elapsed() < LIMIT, "the guest of {name} goes on");
            tokio::time::sleep(EVERY).await;
        }
        Ok(())
    }

    /// Where the pod of a VM may be.
    fn selector(&self, wish: Wish<'_>) -> Value {
        let mut labels = json!({"windlass.dev/space": self.space.name()});
        if let Some(node) = wish.node {
            labels["kubernetes.io/hostname"] = json!(self.whole(node));
        }
        labels
    }
}

// === impl Wish ===

impl Wish<'_> {
    fn annotations(self) -> Value {
        if self.has_defaults { json!({}) } else { json!({CONFIG: GIVES_BACK_SOON}) }
    }
}
