//! NeonVM's kinds, and its controller as far as the rest of a cluster can see it.
//!
//! The kinds are NeonVM's group and names, with a status of their own; they keep what they do not know. The [`Controller`] makes a
//! pod for each VirtualMachine of a namespace, has a [`Hypervisor`] run the VM once a kubelet runs the pod, brings it step by step to what
//! `use` asks for, and shows in the status what the VM has. As NeonVM v0.12.2 does, it looks at all VMs again and again, takes one
//! step at a look, and keeps labels and annotations of pods as those of their objects. A VirtualMachineMigration moves a VM to another pod: the
//! VM keeps its size from the moment that the other pod is made, and its object names and controls that pod once the move is over.

use crate::amounts::Amounts;
use crate::plane::ControlPlane;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;
use tokio::task::JoinSet;

/// Between two looks at all VMs; NeonVM's takes five times as long.
const EVERY: Duration = Duration::from_millis(200);

/// The step of memory of an object that names none.
const SLOT: &str = "1Gi";

/// What runs VMs.
pub trait Hypervisor: Send + Sync + 'static {
    /// Starts the VM of an object of this name and `spec.guest`; where its guest is reached.
    fn start(&mut self, vm: &str, guest: &Value) -> impl Future<Output = IpAddr> + Send;

    /// Takes a step of a VM towards this size; what it has then.
    fn step(&mut self, vm: &str, to: Amounts) -> impl Future<Output = Amounts> + Send;

    /// Moves a VM to another pod; where its guest is reached then.
    fn go_on(&mut self, vm: &str) -> impl Future<Output = IpAddr> + Send;

    /// Ends a VM.
    fn end(&mut self, vm: &str) -> impl Future<Output = ()> + Send;
}

/// A controller. It stops with its value; its VMs go on.
#[derive(Debug)]
pub struct Controller {
    _work: JoinSet<()>,
}

struct Work<H> {
    machines: Api<DynamicObject>,
    migrations: Api<DynamicObject>,
    pods: Api<Pod>,
    hypervisor: H,
    /// Where the guests of VMs that run are reached.
    run: BTreeMap<String, IpAddr>,
    /// How many pods were made.
    pods_made: u64,
}

/// The kind of NeonVM's VMs.
pub fn kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("vm.neon.tech", "v1", "VirtualMachine"))
}

/// The kind of NeonVM's migrations.
pub fn migration_kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("vm.neon.tech", "v1", "VirtualMachineMigration");
    ApiResource::from_gvk(&kind)
}

/// Makes NeonVM's kinds.
pub async fn kinds(plane: &ControlPlane) {
    plane.apply(&plane.folder().put("neonvm.yaml", include_str!("../neonvm.yaml"))).await;
    for kind in ["virtualmachinemigrations", "virtualmachines"] {
        let kind = format!("crd/{kind}.vm.neon.tech");
        // kubectl's own wait fails where there is no condition yet.
        let established = "jsonpath={.status.conditions[?(@.type==\"Established\")].status}";
        let ask = ["get", &kind, "--output", established];
        plane
            .until(&format!("{kind} is established"), async || {
                let said = plane.kubectl(&ask).await;
                if said == "True" { Ok(()) } else { Err(said) }
            })
            .await;
    }
}

/// The size that an object's `spec.guest` asks for.
pub fn asked(guest: &Value) -> Amounts {
    let slot = guest["memorySlotSize"].as_str().unwrap_or(SLOT);
    let list = json!({"cpu": text(&guest["cpus"]["use"]), "memory": slot});
    let amounts = Amounts::of(&serde_json::from_value(list).unwrap());
    let slots = guest["memorySlots"]["use"].as_i64().unwrap_or(1);
    Amounts { memory: amounts.memory * slots, ..amounts }
}

// === impl Controller ===

impl Controller {
    /// The controller of a namespace's VMs.
    pub fn start(client: &Client, namespace: &str, hypervisor: impl Hypervisor) -> Self {
        let machines = Api::namespaced_with(client.clone(), namespace, &kind());
        let migrations = Api::namespaced_with(client.clone(), namespace, &migration_kind());
        let pods = Api::namespaced(client.clone(), namespace);
        let run = BTreeMap::new();
        let work = Work { machines, migrations, pods, hypervisor, run, pods_made: 0 };
        Self { _work: JoinSet::from_iter([work.run()]) }
    }
}

// === impl Work ===

impl<H: Hypervisor> Work<H> {
    async fn run(mut self) {
        loop {
            // An API server that does not answer is asked again.
            if let Ok(machines) = self.machines.list(&ListParams::default()).await {
                let names: Vec<String> = machines.iter().map(ResourceExt::name_any).collect();
                for machine in machines {
                    let _again = self.look(&machine).await;
                }
                self.end_all_but(&names).await;
            }
            let migrations = self.migrations.list(&ListParams::default()).await;
            for migration in migrations.into_iter().flatten() {
                let _again = self.migrate(&migration).await;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn look(&mut self, machine: &DynamicObject) -> kube::Result<()> {
        let name = machine.name_any();
        let status = &machine.data["status"];
        let Some(pod) = status["podName"].as_str() else {
            return self.make_pod(machine).await;
        };
        let Some(pod) = self.pods.get_opt(pod).await? else { return Ok(()) };
        self.keep_alike(machine, &pod).await?;
        let pod_status = pod.status.unwrap_or_default();
        let moves = matches!(status["phase"].as_str(), Some("PreMigrating" | "Migrating"));
        if moves || pod_status.phase.as_deref() != Some("Running") {
            return Ok(());
        }
        let guest = &machine.data["spec"]["guest"];
        let address = match self.run.get(&name) {
            Some(address) => *address,
            None => self.hypervisor.start(&name, guest).await,
        };
        self.run.insert(name.clone(), address);
        let to = asked(guest);
        let has = self.hypervisor.step(&name, to).await;
        let next = json!({
            "phase": if has == to { "Running" } else { "Scaling" },
            "podName": status["podName"],
            "podIP": address.to_string(),
            "node": pod.spec.unwrap_or_default().node_name,
            "cpus": format!("{}m", has.cpu),
            "memorySize": has.memory.to_string(),
        });
        if *status != next { self.show(&name, next).await } else { Ok(()) }
    }

    /// Takes a step of a migration.
    async fn migrate(&mut self, migration: &DynamicObject) -> kube::Result<()> {
        let vm = migration.data["spec"]["vmName"].as_str().unwrap_or_default();
        let Some(machine) = self.machines.get_opt(vm).await? else { return Ok(()) };
        let status = &migration.data["status"];
        let (source, target) = (&machine.data["status"]["podName"], &status["targetPodName"]);
        match status["phase"].as_str() {
            None if machine.data["status"]["phase"] == "Running" => {
                self.show(vm, json!({"phase": "PreMigrating"})).await?;
                let target = self.pod(&machine, Some(migration)).await?;
                let phase = json!({"phase": "Pending", "targetPodName": target});
                self.show_of(migration, phase).await
            }
            Some("Pending") => {
                let pod = self.pods.get(target.as_str().unwrap_or_default()).await?;
                if pod.status.and_then(|status| status.phase).as_deref() != Some("Running") {
                    return Ok(());
                }
                self.show(vm, json!({"phase": "Migrating"})).await?;
                let phase = json!({"phase": "Running", "sourcePodName": source});
                self.show_of(migration, phase).await
            }
            Some("Running") => {
                let address = self.hypervisor.go_on(vm).await;
                self.run.insert(vm.to_owned(), address);
                // The node is shown at the next look, as NeonVM does it.
                let address = address.to_string();
                let there = json!({"phase": "Running", "podName": target, "podIP": address});
                self.show(vm, there).await?;
                self.own(&machine, target.as_str().unwrap_or_default()).await?;
                let source = status["sourcePodName"].as_str().unwrap_or_default();
                self.pods.delete(source, &DeleteParams::default()).await?;
                self.show_of(migration, json!({"phase": "Succeeded"})).await
            }
            _ => Ok(()),
        }
    }

    async fn make_pod(&mut self, machine: &DynamicObject) -> kube::Result<()> {
        let pod = self.pod(machine, None).await?;
        self.show(&machine.name_any(), json!({"phase": "Pending", "podName": pod})).await
    }

    /// Makes a pod for a VM, or the one that a migration moves it to, which is on another node; its name.
    async fn pod(
        &mut self,
        machine: &DynamicObject,
        migration: Option<&DynamicObject>,
    ) -> kube::Result<String> {
        let (name, spec) = (machine.name_any(), &machine.data["spec"]);
        self.pods_made += 1;
        let pod_name = format!("{name}-{:05}", self.pods_made);
        let size = asked(&spec["guest"]);
        let requests = json!({"cpu": format!("{}m", size.cpu), "memory": size.memory.to_string()});
        let mut labels = machine.labels().clone();
        labels.insert("vm.neon.tech/name".to_owned(), name.clone());
        let owner = match migration {
            Some(migration) => owner(migration, "VirtualMachineMigration"),
            None => owner(machine, "VirtualMachine"),
        };
        let elsewhere = migration.map(|_| {
            let from = json!({
                "key": "kubernetes.io/hostname", "operator": "NotIn",
                "values": [machine.data["status"]["node"]],
            });
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [from]}],
            }}})
        });
        let pod = json!({
            "metadata": {
                "name": pod_name, "labels": labels, "annotations": machine.annotations(),
                "ownerReferences": [owner],
            },
            "spec": {
                "schedulerName": spec["schedulerName"],
                "nodeSelector": spec["nodeSelector"],
                "tolerations": spec["tolerations"],
                "affinity": elsewhere,
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "neonvm-runner", "image": "neonvm-runner",
                    "resources": {"requests": requests},
                }],
            },
        });
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await?;
        Ok(pod_name)
    }

    /// Makes a pod that of a VM, and no longer that of a migration, with which it would go.
    async fn own(&self, machine: &DynamicObject, pod: &str) -> kube::Result<()> {
        let owners = json!([owner(machine, "VirtualMachine")]);
        let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owners}}));
        self.pods.patch(pod, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Has a pod say what its object says.
    async fn keep_alike(&self, machine: &DynamicObject, pod: &Pod) -> kube::Result<()> {
        let mut labels = machine.labels().clone();
        labels.insert("vm.neon.tech/name".to_owned(), machine.name_any());
        if *pod.labels() == labels && pod.annotations() == machine.annotations() {
            return Ok(());
        }
        let patch = json!([
            {"op": "add", "path": "/metadata/labels", "value": labels},
            {"op": "add", "path": "/metadata/annotations", "value": machine.annotations()},
        ]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
        self.pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await.map(drop)
    }

    async fn show(&self, name: &str, status: Value) -> kube::Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.machines.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn show_of(&self, migration: &DynamicObject, status: Value) -> kube::Result<()> {
        let (name, patch) = (migration.name_any(), Patch::Merge(json!({"status": status})));
        self.migrations.patch_status(&name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Ends the VMs whose objects are gone, and their pods.
    async fn end_all_but(&mut self, names: &[String]) {
        let gone: Vec<String> =
            self.run.keys().filter(|name| !names.contains(name)).cloned().collect();
        for name in gone {
            let of_vm = ListParams::default().labels(&format!("vm.neon.tech/name={name}"));
            let deleted = self.pods.delete_collection(&DeleteParams::default(), &of_vm).await;
            if deleted.is_ok() {
                self.run.remove(&name);
                self.hypervisor.end(&name).await;
            }
        }
    }
}

/// What a pod says of the object that controls it.
fn owner(object: &DynamicObject, kind: &str) -> Value {
    json!({
        "apiVersion": "vm.neon.tech/v1", "kind": kind, "name": object.name_any(),
        "uid": object.uid(), "controller": true,
    })
}

/// A quantity as text: it may be a number.
fn text(quantity: &Value) -> String {
    quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned)
}
