//! A real control plane, a real plugin and scheduler, and an agent on each node, with VMs of NeonVM that are real guests.
//!
//! NeonVM's controller is played by the harness, over guests of the lab; everything else is what ships, with the identities and rights
//! that ship, over TLS.

mod containers;
mod faults;
mod in_lab;
mod parts;
mod people;
mod room;
mod vms;

use crate::programs::Programs;
use crate::relay::Relay;
use crate::served::{Served, last_words};
use crate::stage::{Turn, turn, turn_beside_others};
use anyhow::{Context, Result, anyhow};
pub(crate) use containers::Containers;
pub use faults::Part;
use faults::Ways;
pub(crate) use in_lab::{Guests, InLab};
use kube::api::{Api, DynamicObject};
pub use people::{Said, Sentences};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_control_plane::neonvm::{self, Controller};
use windlass_control_plane::{Amounts, Asked, ControlPlane, Kubelet, Scheduler, Space};
use windlass_lab::{Folder, Guest, Inside};

/// How long a condition may take on a machine that has other things to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);
/// How often a condition is looked at.
pub(crate) const EVERY: Duration = Duration::from_millis(200);

const MIB: i64 = 1 << 20;
/// The step of memory of a VM.
const SLOT: i64 = 256 * MIB;
/// vCPUs and memory of a node.
const NODE: (&str, &str) = ("6", "8Gi");
/// The scheduler that has the extender.
const SCHEDULER: &str = "windlass-scheduler";
/// Where Windlass is installed.
const HOME: &str = "windlass";
/// What is installed of it.
const INSTALLED: [&str; 5] =
    ["plugin", "plugin-neonvm", "plugin-resize", "plugin-conditions", "agent"];
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
    ways: Ways,
    space: Space<'static>,
    guests: Guests,
    plugin: Served,
    agents: BTreeMap<String, Served>,
    windlass: PathBuf,
    folder: Folder,
    _parts: (Scheduler, Controller, Containers, Vec<Kubelet>),
    _turn: File,
}

/// What is seen of a VM, from outside.
#[derive(Debug)]
pub struct Look {
    /// Its object.
    pub object: Value,
    /// How often its spec was changed since it was made, and once more.
    pub generation: i64,
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
        Self::start_with(nodes, turn, false).await
    }

    /// The same, beside whatever else runs: it waits most of the time.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn start_beside_others(nodes: &[&str]) -> Result<Self> {
        Self::start_with(nodes, turn_beside_others, false).await
    }

    /// The same, and its API server writes down what Windlass asks of it: [`Cluster::requests`].
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn start_audited(nodes: &[&str]) -> Result<Self> {
        Self::start_with(nodes, turn_beside_others, true).await
    }

    async fn start_with(nodes: &[&str], turn: impl Turn, is_audited: bool) -> Result<Self> {
        let found = move || anyhow::Ok((Programs::find()?, turn()?));
        let (programs, turn) = tokio::task::spawn_blocking(found).await??;
        // What borrows it lives as long as the cluster, which ends its programs.
        let plane: &'static ControlPlane = Box::leak(Box::new(match is_audited {
            true => ControlPlane::start_audited().await,
            false => ControlPlane::start().await,
        }));
        let manifests = Path::new("../../deploy/kustomize");
        for part in INSTALLED {
            plane.apply(&manifests.join(part)).await;
        }
        neonvm::kinds(plane).await;
        let folder = Folder::create()?;
        let at = plane.url().trim_start_matches("https://").parse()?;
        let ways =
            Ways { plugin: Relay::start(|_| at).await?, agents: Relay::start(|_| at).await? };
        let plugin = parts::plugin(plane, ways.plugin.at(), &folder).await?;
        let extender = plugin.extender.context("the plugin says where it serves a scheduler")?;
        let extender = Scheduler::extender_at(&extender.to_string());
        let scheduler = Scheduler::start(plane, SCHEDULER, &[extender]).await;
        let space = Space::new(plane).await;
        let home = Space::named(plane, HOME).await;
        fs::write(folder.path().join(parts::CA), parts::ca(plane).await?)?;
        parts::operator(plane, &space, &folder).await?;
        let (mut kubelets, mut agents) = (Vec::new(), BTreeMap::new());
        for node in nodes {
            let whole = space.node(node, NODE.0, NODE.1).await;
            kubelets.push(Kubelet::start(space.client(), &whole).await);
            home.pod_of(AGENT, &format!("agent-{whole}"), &whole).await;
            let way = ways.agents.at();
            let served = parts::agent(plane, way, &home, &folder, &plugin, &whole).await?;
            agents.insert((*node).to_owned(), served);
        }
        let guests = Guests::default();
        let (client, name) = (space.client(), space.name());
        let in_lab = (programs.lab.clone(), guests.clone());
        let containers = Containers::start(client, name, in_lab, folder.path().join(PODS));
        let in_lab = InLab { lab: programs.lab, guests: guests.clone() };
        let controller = Controller::start(client, name, in_lab);
        let (windlass, _parts) = (programs.windlass, (scheduler, controller, containers, kubelets));
        let _turn = turn;
        Ok(Self { plane, ways, space, guests, plugin, agents, windlass, folder, _parts, _turn })
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
        self.until_within(LIMIT, name, what, wanted).await
    }

    /// The same, and it may take so long.
    ///
    /// # Errors
    /// What was seen last, and the last words of all.
    pub async fn until_within(
        &self,
        limit: Duration,
        name: &str,
        what: &str,
        wanted: impl Fn(&Look) -> bool,
    ) -> Result<Look> {
        let look = async || {
            let look = self.look(name).await?;
            Ok(if wanted(&look) { Ok(look) } else { Err(format!("{look:#?}")) })
        };
        self.until_there(&format!("{name}: {what}"), limit, look).await
    }

    /// Looks at a pod that is a VM until the VM's part of what its kubelet has allocated (thousandths of a vCPU, and MiB) and the
    /// vCPUs that its guest's kernel uses are as wanted.
    ///
    /// # Errors
    /// What was seen last, and the last words of all.
    pub async fn until_pod(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn((i64, i64), Option<u32>) -> bool,
    ) -> Result<()> {
        self.until_pod_within(LIMIT, name, what, wanted).await
    }

    /// The same, and it may take so long.
    ///
    /// # Errors
    /// What was seen last, and the last words of all.
    pub async fn until_pod_within(
        &self,
        limit: Duration,
        name: &str,
        what: &str,
        wanted: impl Fn((i64, i64), Option<u32>) -> bool,
    ) -> Result<()> {
        let look = async || {
            let (allocated, _) = self.allocated(name).await?;
            let inside = self.inside(name).await;
            let online = inside.as_ref().and_then(|inside| inside.cpus_online);
            let is_so = wanted(allocated, online);
            Ok(if is_so { Ok(()) } else { Err(format!("{allocated:?}, {inside:?}")) })
        };
        self.until_there(&format!("{name}: {what}"), limit, look).await
    }

    /// The VM's part of what the kubelet has allocated to a pod that is a VM (thousandths of a vCPU, and MiB), and how often the pod's spec
    /// was changed since it was made, and once more.
    ///
    /// # Errors
    /// The API server has no such pod.
    pub async fn allocated(&self, name: &str) -> Result<((i64, i64), i64)> {
        let pod = self.space.pods().get(name).await?;
        let containers = pod.status.and_then(|status| status.container_statuses);
        let allocated = containers.and_then(|all| all.into_iter().next()?.allocated_resources);
        let Amounts { cpu, memory } = Amounts::of(&allocated.unwrap_or_default());
        let (own_cpu, own_mib) = OVERHEAD;
        let generation = pod.metadata.generation.unwrap_or_default();
        Ok(((cpu - own_cpu, memory / MIB - own_mib), generation))
    }

    /// Looks until something is there. At every look, the VMs of each node fit it.
    async fn until_there<T>(
        &self,
        what: &str,
        limit: Duration,
        look: impl AsyncFn() -> Result<Result<T, String>>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            self.within_nodes().await?;
            let seen = match look().await? {
                Ok(found) => {
                    eprintln!("    {:5.1} s  {what}", start.elapsed().as_secs_f64());
                    return Ok(found);
                }
                Err(seen) => seen,
            };
            if start.elapsed() > limit {
                let words = self.last_words();
                return Err(anyhow!("not within {limit:?}: {what}; last seen: {seen}\n{words}"));
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
        let generation = object.metadata.generation.unwrap_or_default();
        Ok(Look { object: object.data, generation, inside: self.inside(name).await })
    }

    /// The guest of a VM, as its kernel has it.
    async fn inside(&self, name: &str) -> Option<Inside> {
        self.guests.get(name)?.inside().await.ok()
    }

    /// How many requests the programs of Windlass have sent to the API server, of each kind; of one that is [audited](Cluster::start_audited).
    pub fn requests(&self) -> BTreeMap<Asked, u64> {
        self.plane.asked()
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

    /// The name of a node of the test, as the API server knows it.
    fn whole(&self, node: &str) -> String {
        format!("{}-{node}", self.space.name())
    }
}

// === impl Look ===

impl Look {
    /// What its spec asks for: thousandths of a vCPU, and MiB.
    pub fn asked(&self) -> (i64, i64) {
        let Amounts { cpu, memory } = neonvm::asked(&self.object["spec"]["guest"]);
        (cpu, memory / MIB)
    }

    /// How many vCPUs are online, as its guest's kernel has it.
    pub fn online(&self) -> Option<u32> {
        self.inside.as_ref()?.cpus_online
    }

    /// Whether its guest has these vCPUs.
    pub fn has(&self, vcpus: u32) -> bool {
        self.online() == Some(vcpus)
    }

    /// Whether its guest has more. Two workers may weigh more than two vCPUs while the guest itself is at work.
    pub fn has_more_than(&self, vcpus: u32) -> bool {
        self.online() > Some(vcpus)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.plane.api_server().kill();
        self.plane.etcd().kill();
    }
}
