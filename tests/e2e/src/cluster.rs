//! A real control plane, a real plugin and scheduler, and an agent on each node, with VMs of NeonVM that are real guests.
//!
//! NeonVM's controller is played by the harness, over guests of the lab; everything else is what ships, with the identities and rights
//! that ship, over TLS.

use crate::host::free_ports;
use crate::programs::{Programs, beside};
use crate::served::{Served, last_words};
use crate::stage::turn;
use anyhow::{Context, Result, anyhow};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windlass_control_plane::neonvm::{self, Controller, Hypervisor};
use windlass_control_plane::{Amounts, ControlPlane, Identity, Kubelet, Scheduler, Space};
use windlass_lab::{Extension, Folder, Guest, GuestSpec, Inside, Lab};

/// How long a condition may take on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(180);
/// How often a condition is looked at.
const EVERY: Duration = Duration::from_millis(200);

const MIB: i64 = 1 << 20;
/// The step of memory of a VM.
const SLOT: i64 = 256 * MIB;
/// The scheduler that has the extender.
const SCHEDULER: &str = "windlass-scheduler";
/// Where Windlass is installed.
const HOME: &str = "windlass";
/// The account of agents.
const AGENT: &str = "windlass-agent";

/// A cluster. Its parts end with it.
pub struct Cluster {
    plane: &'static ControlPlane,
    space: Space<'static>,
    guests: Guests,
    plugin: Served,
    agents: BTreeMap<String, Served>,
    folder: Folder,
    _parts: (Scheduler, Controller, Vec<Kubelet>),
    _turn: File,
}

/// What is seen of a VM, from outside.
#[derive(Debug)]
pub struct Look {
    /// Its object.
    pub object: Value,
    /// Its guest, as its kernel has it; nothing before it has booted.
    pub inside: Option<Inside>,
}

/// The guests of VMs, by the names of their objects.
#[derive(Clone, Default)]
struct Guests(Arc<Mutex<BTreeMap<String, Arc<Guest>>>>);

/// Runs VMs as guests of the lab.
struct InLab {
    lab: Lab,
    guests: Guests,
}

// === impl Cluster ===

impl Cluster {
    /// Starts all of it, with these nodes of 4 vCPUs.
    ///
    /// # Errors
    /// Whatever did not come about.
    pub async fn start(nodes: &[&str]) -> Result<Self> {
        let (programs, turn) =
            tokio::task::spawn_blocking(|| anyhow::Ok((Programs::find()?, turn()?))).await??;
        let plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::start().await));
        let manifests = Path::new("../../deploy/kustomize");
        for part in ["plugin", "plugin-neonvm", "agent"] {
            plane.apply(&manifests.join(part)).await;
        }
        neonvm::kinds(plane).await;
        let folder = Folder::create()?;
        let plugin = plugin(plane, &folder).await?;
        let extender = plugin.extender.context("the plugin says where it serves a scheduler")?;
        let extender = extender_at(&extender.to_string());
        let scheduler = Scheduler::start(plane, SCHEDULER, &[extender]).await;
        let space = Space::new(plane).await;
        let home = Space::named(plane, HOME).await;
        fs::write(folder.path().join("ca.crt"), ca(plane).await?)?;
        let (mut kubelets, mut agents) = (Vec::new(), BTreeMap::new());
        for node in nodes {
            let whole = space.node(node, "4", "8Gi").await;
            kubelets.push(Kubelet::start(space.client(), &whole).await);
            let served = agent(plane, &home, &folder, &plugin, &whole).await?;
            agents.insert((*node).to_owned(), served);
        }
        let guests = Guests::default();
        let in_lab = InLab { lab: programs.lab, guests: guests.clone() };
        let controller = Controller::start(space.client(), space.name(), in_lab);
        let parts = (scheduler, controller, kubelets);
        Ok(Self { plane, space, guests, plugin, agents, folder, _parts: parts, _turn: turn })
    }

    /// Makes a VM of one vCPU and 256 MiB that may have four vCPUs and 1.25 GiB, and returns once it runs.
    ///
    /// # Errors
    /// Its guest is not there in time.
    pub async fn vm(&self, name: &str, node: &str) -> Result<Look> {
        let node = format!("{}-{node}", self.space.name());
        let object = json!({
            "apiVersion": "vm.neon.tech/v1", "kind": "VirtualMachine",
            "metadata": {
                "name": name,
                "labels": {"autoscaling.neon.tech/enabled": "true"},
                "annotations": {
                    "windlass.dev/config": r#"{"scaleDown":{"cpu":"2s","memory":"2s"}}"#,
                },
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "nodeSelector": {"kubernetes.io/hostname": node},
                "guest": {
                    "cpus": {"min": 1, "max": 4, "use": 1},
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

    /// Changes the object of a VM.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.machines().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes the object of a VM.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.machines().delete(name, &DeleteParams::default()).await?;
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
                let log = |name: &str| last_words(&self.folder.path().join(format!("{name}.log")));
                let agents: Vec<String> =
                    self.agents.keys().map(|node| log(&format!("agent-{node}"))).collect();
                let (plugin, agents) = (log("plugin"), agents.join("\n"));
                let seen = format!("{look:#?}\nplugin: {plugin}\nagents: {agents}");
                return Err(anyhow!("no {what} of {name}; last seen: {seen}"));
            }
            tokio::time::sleep(EVERY).await;
        }
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

    /// Kills the agent of a node as a crash would, and starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub async fn restart_agent(&mut self, node: &str) -> Result<()> {
        let agent = self.agents.remove(node).context("the test has this node")?;
        agent.kill()?;
        let home = Space::named(self.plane, HOME).await;
        let whole = format!("{}-{node}", self.space.name());
        let served = agent_again(self.plane, &home, &self.folder, &self.plugin, &whole).await?;
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

// === impl Guests ===

impl Guests {
    fn get(&self, name: &str) -> Option<Arc<Guest>> {
        self.0.lock().expect("no test panics with it").get(name).cloned()
    }

    fn put(&self, name: &str, guest: Option<Guest>) {
        let mut guests = self.0.lock().expect("no test panics with it");
        match guest {
            Some(guest) => drop(guests.insert(name.to_owned(), Arc::new(guest))),
            None => drop(guests.remove(name)),
        }
    }
}

// === impl InLab ===

impl Hypervisor for InLab {
    async fn start(&mut self, vm: &str, guest: &Value) -> IpAddr {
        let most = |axis: &str| guest[axis]["max"].as_u64().expect("the test says it");
        let slot = u32::try_from(SLOT / MIB).expect("it is small");
        let least = u32::try_from(guest["memorySlots"]["min"].as_u64().unwrap_or(1));
        let (least, slots) = (least.expect("it is small"), most("memorySlots"));
        let slots = u32::try_from(slots).expect("it is small");
        let spec = GuestSpec {
            boot_mib: slot * least,
            vcpus: 1,
            max_vcpus: u32::try_from(most("cpus")).expect("it is small"),
            extension: Extension::VirtioMem { mib: slot * (slots - least) },
            ..GuestSpec::named(vm)
        };
        let guest = Guest::boot(&self.lab, spec).await.expect("the guest boots");
        let address = guest.informant().ip();
        self.guests.put(vm, Some(guest));
        address
    }

    /// No vCPU can be taken out of an emulated guest: it has what it may use, as with NeonVM's cgroup.
    async fn step(&mut self, vm: &str, to: Amounts) -> Amounts {
        let guest = self.guests.get(vm).expect("it was started");
        let Ok(has) = guest.outside().await else { return Amounts::default() };
        let plugged = i64::from(has.vcpus) * 1000;
        if plugged < to.cpu {
            let _next_time = guest.plug_vcpu().await;
        }
        let boot = i64::from(guest.spec().boot_mib) * MIB;
        let wanted = u64::try_from(to.memory - boot).unwrap_or_default();
        let _next_time = guest.request_memory(wanted).await;
        Amounts { cpu: plugged.min(to.cpu), memory: i64::try_from(has.memory()).unwrap_or(boot) }
    }

    async fn end(&mut self, vm: &str) {
        self.guests.put(vm, None);
    }
}

/// The plugin, as it ships but for addresses: it makes its own certificates.
async fn plugin(plane: &ControlPlane, folder: &Folder) -> Result<Served> {
    let kubeconfig = plane.kubeconfig(Identity::Plugin);
    let text = format!(
        "dump_state = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         compute_unit = {{ cpu = 1, memory = \"{}MiB\" }}\n\
         [kubernetes]\nkubeconfig = {kubeconfig:?}\nneonvm = true\n\
         lease = {{ enabled = false }}\npermits = \"127.0.0.1:0\"\n\
         plain_extender = true\nextender = \"127.0.0.1:0\"\n",
        SLOT / MIB,
    );
    start("windlass-plugin", folder, "plugin", text).await
}

/// The agent of a node: its pod is there, and it shows a token of that pod to the API server and another to the plugin.
async fn agent(
    plane: &ControlPlane,
    home: &Space<'_>,
    folder: &Folder,
    plugin: &Served,
    node: &str,
) -> Result<Served> {
    home.pod_of(AGENT, &format!("agent-{node}"), node).await;
    agent_again(plane, home, folder, plugin, node).await
}

async fn agent_again(
    plane: &ControlPlane,
    home: &Space<'_>,
    folder: &Folder,
    plugin: &Served,
    node: &str,
) -> Result<Served> {
    let pod = home.pods().get(&format!("agent-{node}")).await?;
    let to_plane = home.token(AGENT, "https://kubernetes.default.svc", Some(&pod)).await;
    let to_plugin = home.token(AGENT, "windlass-plugin", Some(&pod)).await;
    let kubeconfig = plane.kubeconfig_with(node, &to_plane);
    let token = folder.path().join(format!("token-{node}"));
    fs::write(&token, to_plugin)?;
    let permits = plugin.permits.context("the plugin says where it serves permits")?;
    let (ca, ports) = (folder.path().join("ca.crt"), free_ports()?);
    let text = format!(
        "plugin = \"https://{permits}\"\nplugin_ca = {ca:?}\nplugin_token = {token:?}\n\
         admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
         callback_ports = \"{}-{}\"\n\
         compute_unit = {{ cpu = 1, memory = \"{}MiB\" }}\n\
         [kubernetes]\nnode = \"{node}\"\nkubeconfig = {kubeconfig:?}\n",
        ports.start(),
        ports.end(),
        SLOT / MIB,
    );
    let name = format!("agent-{}", node.rsplit('-').next().unwrap_or(node));
    start("windlass-agent", folder, &name, text).await
}

async fn start(program: &'static str, folder: &Folder, name: &str, text: String) -> Result<Served> {
    let (folder, name) = (folder.path().to_owned(), name.to_owned());
    let started = move || Served::start(&beside(program)?, &folder, &name, &text);
    tokio::task::spawn_blocking(started).await?
}

/// The CA that the plugin makes for its agents, once it has.
async fn ca(plane: &ControlPlane) -> Result<String> {
    let ask = [
        "--namespace",
        HOME,
        "get",
        "configmaps",
        "--field-selector=metadata.name=windlass-plugin-ca",
        "--output=jsonpath={.items[*].data.ca\\.crt}",
    ];
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        let ca = plane.kubectl(&ask).await;
        if !ca.is_empty() {
            return Ok(ca);
        }
        tokio::time::sleep(EVERY).await;
    }
    Err(anyhow!("the plugin has made no CA"))
}

fn extender_at(at: &str) -> Value {
    json!({
        "urlPrefix": format!("http://{at}"),
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 1,
        "nodeCacheCapable": true,
        "httpTimeout": "8s",
    })
}
