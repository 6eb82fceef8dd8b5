//! A real control plane, a real plugin and scheduler, and an agent on each node, with VMs of NeonVM that are real guests.
//!
//! NeonVM's controller is played by the harness, over guests of the lab; everything else is what ships, with the identities and rights
//! that ship, over TLS.

mod containers;
mod in_lab;
mod parts;

use crate::programs::Programs;
use crate::served::{Served, last_words};
use crate::stage::turn;
use anyhow::{Context, Result, anyhow, ensure};
pub(crate) use containers::Containers;
pub(crate) use in_lab::{Guests, InLab};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_control_plane::neonvm::{self, Controller};
use windlass_control_plane::{Amounts, ControlPlane, Kubelet, Scheduler, Space};
use windlass_lab::{Folder, Guest, Inside};

/// How long a condition may take on a machine that has other things to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);
/// How often a condition is looked at.
pub(crate) const EVERY: Duration = Duration::from_millis(200);

const MIB: i64 = 1 << 20;
/// The step of memory of a VM.
const SLOT: i64 = 256 * MIB;
/// The scheduler that has the extender.
const SCHEDULER: &str = "windlass-scheduler";
/// Where Windlass is installed.
const HOME: &str = "windlass";
/// The account of agents.
const AGENT: &str = "windlass-agent";
/// The kubelets' folder of pods, in that of the test.
const PODS: &str = "pods";
/// The label of nodes whose VMs' own pods are resized.
const RESIZED: &str = "windlass.dev/resized";
/// What QEMU needs for itself in a test's pod.
const OVERHEAD: (i64, i64) = (100, 128);

/// A cluster. Its parts end with it.
pub struct Cluster {
    plane: &'static ControlPlane,
    space: Space<'static>,
    guests: Guests,
    plugin: Served,
    agents: BTreeMap<String, Served>,
    folder: Folder,
    _parts: (Scheduler, Controller, Containers, Vec<Kubelet>),
    _turn: File,
}

/// A part that may be away.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The plugin.
    Plugin,
    /// All agents.
    Agents,
    /// The API server.
    ApiServer,
}

/// What is seen of a VM, from outside.
#[derive(Debug)]
pub struct Look {
    /// Its object.
    pub object: Value,
    /// Its guest, as its kernel has it; nothing before it has booted.
    pub inside: Option<Inside>,
}

// === impl Cluster ===

impl Cluster {
    /// Starts all of it, with these nodes of 6 vCPUs.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn start(nodes: &[&str]) -> Result<Self> {
        let (programs, turn) =
            tokio::task::spawn_blocking(|| anyhow::Ok((Programs::find()?, turn()?))).await??;
        // What borrows it lives as long as the cluster, which ends its programs.
        let plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::start().await));
        let manifests = Path::new("../../deploy/kustomize");
        for part in ["plugin", "plugin-neonvm", "plugin-resize", "agent"] {
            plane.apply(&manifests.join(part)).await;
        }
        neonvm::kinds(plane).await;
        let folder = Folder::create()?;
        let plugin = parts::plugin(plane, &folder).await?;
        let extender = plugin.extender.context("the plugin says where it serves a scheduler")?;
        let extender = Scheduler::extender_at(&extender.to_string());
        let scheduler = Scheduler::start(plane, SCHEDULER, &[extender]).await;
        let space = Space::new(plane).await;
        let home = Space::named(plane, HOME).await;
        fs::write(folder.path().join("ca.crt"), parts::ca(plane).await?)?;
        let (mut kubelets, mut agents) = (Vec::new(), BTreeMap::new());
        for node in nodes {
            let whole = space.node(node, "6", "8Gi").await;
            kubelets.push(Kubelet::start(space.client(), &whole).await);
            home.pod_of(AGENT, &format!("agent-{whole}"), &whole).await;
            let served = parts::agent(plane, &home, &folder, &plugin, &whole).await?;
            agents.insert((*node).to_owned(), served);
        }
        let guests = Guests::default();
        let (client, name) = (space.client(), space.name());
        let in_lab = (programs.lab.clone(), guests.clone());
        let containers = Containers::start(client, name, in_lab, folder.path().join(PODS));
        let in_lab = InLab { lab: programs.lab, guests: guests.clone() };
        let controller = Controller::start(client, name, in_lab);
        let parts = (scheduler, controller, containers, kubelets);
        Ok(Self { plane, space, guests, plugin, agents, folder, _parts: parts, _turn: turn })
    }

    /// Makes a VM of one vCPU and 256 MiB that may have four vCPUs and 1.25 GiB, and returns once it runs. It gives back soon what
    /// it needs no more.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm(&self, name: &str) -> Result<Look> {
        self.vm_from(name, "1").await
    }

    /// The same, which may go down to this much CPU, and goes in steps of it.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm_from(&self, name: &str, least: &str) -> Result<Look> {
        let config = r#"{"scaleDown":{"cpu":"2s","memory":"2s"}}"#;
        let object = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
            "metadata": {
                "name": name,
                "labels": {"autoscaling.neon.tech/enabled": "true"},
                "annotations": {"windlass.dev/config": config},
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": {"windlass.dev/space": self.space.name()},
                "guest": {
                    "cpus": {"min": least, "max": 4, "use": 1},
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
        let whole = format!("{}-{node}", self.space.name());
        nodes.patch(&whole, &PatchParams::default(), &labels).await?;
        Ok(())
    }

    /// Makes a pod that is a VM, as [`Cluster::vm`] makes an object, and returns once its guest runs. Its container has what the VM
    /// has and what QEMU needs for itself.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn pod_vm(&self, name: &str) -> Result<()> {
        let bounds = r#"{"min":{"cpu":1,"mem":"256Mi"},"max":{"cpu":4,"mem":"1280Mi"}}"#;
        let (cpu, mib) = OVERHEAD;
        let overhead = format!(r#"{{"cpu":"{cpu}m","memory":"{mib}Mi"}}"#);
        let size = json!({"cpu": format!("{}m", 1000 + cpu), "memory": format!("{}Mi", 256 + mib)});
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {"windlass.dev/enabled": "true"},
                "annotations": {
                    "windlass.dev/bounds": bounds,
                    "windlass.dev/overhead": overhead,
                    "windlass.dev/config": r#"{"scaleDown":{"cpu":"2s","memory":"2s"}}"#,
                },
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": {"windlass.dev/space": self.space.name()},
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
        self.until_pod(name, "a guest that runs", |_, inside| inside.is_some()).await
    }

    /// Deletes a pod that is a VM, and returns once its guest is gone.
    ///
    /// # Errors
    /// The API server refuses it, or the guest does not go in time.
    pub async fn delete_pod(&self, name: &str) -> Result<()> {
        self.space.pods().delete(name, &DeleteParams::default()).await?;
        self.until_ended(name).await
    }

    /// Looks at a pod that is a VM until the VM's part of what its kubelet has allocated (thousandths of a vCPU, and MiB) and its guest
    /// are as wanted.
    ///
    /// # Errors
    /// What was seen last, and the last words of all.
    pub async fn until_pod(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn((i64, i64), Option<&Inside>) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        loop {
            let pod = self.space.pods().get(name).await?;
            let containers = pod.status.and_then(|status| status.container_statuses);
            let allocated = containers.and_then(|all| all.into_iter().next()?.allocated_resources);
            let Amounts { cpu, memory } = Amounts::of(&allocated.unwrap_or_default());
            let (own_cpu, own_mib) = OVERHEAD;
            let allocated = (cpu - own_cpu, memory / MIB - own_mib);
            let inside = match self.guests.get(name) {
                Some(guest) => guest.inside().await.ok(),
                None => None,
            };
            if wanted(allocated, inside.as_ref()) {
                eprintln!("    {:5.1} s  {name}: {what}", start.elapsed().as_secs_f64());
                return Ok(());
            }
            if start.elapsed() > LIMIT {
                let seen = format!("{allocated:?}, {inside:?}\n{}", self.last_words());
                return Err(anyhow!("no {what} of {name}; last seen: {seen}"));
            }
            tokio::time::sleep(EVERY).await;
        }
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

    async fn until_ended(&self, name: &str) -> Result<()> {
        let start = Instant::now();
        while self.guests.get(name).is_some() {
            ensure!(start.elapsed() < LIMIT, "the guest of {name} goes on");
            tokio::time::sleep(EVERY).await;
        }
        Ok(())
    }

    /// The guest of a VM.
    ///
    /// # Errors
    /// There is none.
    pub fn guest(&self, name: &str) -> Result<Arc<Guest>> {
        self.guests.get(name).with_context(|| format!("no guest of {name}"))
    }

    /// Looks at a VM until it is as wanted.
    ///
    /// # Errors
    /// What was seen last, and the last words of all.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Look) -> bool,
    ) -> Result<Look> {
        let start = Instant::now();
        loop {
            let look = self.look(name).await?;
            if wanted(&look) {
                eprintln!("    {:5.1} s  {name}: {what}", start.elapsed().as_secs_f64());
                return Ok(look);
            }
            if start.elapsed() > LIMIT {
                let seen = format!("{look:#?}\n{}", self.last_words());
                return Err(anyhow!("no {what} of {name}; last seen: {seen}"));
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Of the plugin and the agents.
    fn last_words(&self) -> String {
        let log = |name: &str| last_words(&self.folder.path().join(format!("{name}.log")));
        let agents: Vec<String> =
            self.agents.keys().map(|node| log(&format!("agent-{node}"))).collect();
        format!("plugin: {}\nagents: {}", log("plugin"), agents.join("\n"))
    }

    /// One look at a VM.
    ///
    /// # Errors
    /// The API server has no such object.
    pub async fn look(&self, name: &str) -> Result<Look> {
        let object = self.machines().get(name).await?;
        let inside = match self.guests.get(name) {
            Some(guest) => guest.inside().await.ok(),
            None => None,
        };
        Ok(Look { object: object.data, inside })
    }

    /// Has a part do nothing until it goes on.
    ///
    /// # Errors
    /// It has ended.
    pub fn halt(&self, part: Part) -> Result<()> {
        self.signal(part, "STOP")
    }

    /// Has a part go on.
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(&self, part: Part) -> Result<()> {
        self.signal(part, "CONT")
    }

    fn signal(&self, part: Part, signal: &str) -> Result<()> {
        let of_served = format!("-{signal}");
        match part {
            Part::Plugin => self.plugin.signal(&of_served),
            Part::Agents => self.agents.values().try_for_each(|agent| agent.signal(&of_served)),
            Part::ApiServer => {
                self.plane.api_server().signal(signal);
                Ok(())
            }
        }
    }

    /// Kills the agent of a node as a crash would, and starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub async fn restart_agent(&mut self, node: &str) -> Result<()> {
        let agent = self.agents.remove(node).context("the test has this node")?;
        agent.kill()?;
        let home = Space::named(self.plane, HOME).await;
        let whole = format!("{}-{node}", self.space.name());
        let served = parts::agent(self.plane, &home, &self.folder, &self.plugin, &whole).await?;
        self.agents.insert(node.to_owned(), served);
        Ok(())
    }

    /// Ends all in good order.
    ///
    /// # Errors
    /// One of them did not, or panicked.
    pub async fn close(mut self) -> Result<()> {
        for agent in self.agents.values_mut() {
            agent.stop().await.context("an agent ended badly")?;
        }
        self.plugin.stop().await.context("the plugin ended badly")
    }

    fn machines(&self) -> Api<DynamicObject> {
        let client = self.space.client().clone();
        Api::namespaced_with(client, self.space.name(), &neonvm::kind())
    }
}

// === impl Look ===

impl Look {
    /// What its spec asks for: thousandths of a vCPU, and MiB.
    pub fn asked(&self) -> (i64, i64) {
        let Amounts { cpu, memory } = neonvm::asked(&self.object["spec"]["guest"]);
        (cpu, memory / MIB)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.plane.api_server().kill();
        self.plane.etcd().kill();
    }
}
