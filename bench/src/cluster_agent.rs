//! What one agent of a cluster takes, how soon many VMs of its node grow at once, and how soon one real guest does.
//!
//! The control plane, the plugin and the agents are what ships, with the accounts and rights that ship; NeonVM's controller is
//! played by this program, and so are all guests but the one that grows alone. The agent is watched without VMs on other nodes
//! and with many, whose objects change all the while: what it takes is to be the same.

mod alone;
mod neonvm;
mod objects;
mod programs;
mod surge;

pub(crate) use alone::Grown;
pub(crate) use surge::Surge;

use crate::crowd::{self, Crowd, MOST, UNIT_MIB};
use crate::print;
use crate::program::{PATIENCE, Program};
use crate::scrape;
use crate::sizes::Resident;
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use neonvm::{Controller, Hypervisor};
use objects::Vm;
use programs::Installed;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass_control_plane::{Amounts, ControlPlane, Space, Way};

/// VMs of a node.
pub(crate) const FEW: usize = 200;
/// VMs of a node that has many.
pub(crate) const MANY: usize = 1_000;
/// VMs of other nodes.
pub(crate) const ELSEWHERE: usize = 5_000;
/// VMs of each of these.
const EACH: usize = 100;
/// Between two changes of them.
const CHANGE: Duration = Duration::from_millis(50);
/// How long an agent is watched.
pub(crate) const WATCHED: Duration = Duration::from_secs(60);
/// Until what follows a start is over.
const SETTLED: Duration = Duration::from_secs(20);

/// Where guests reach their agent that are played by this program.
const REACHED: [&str; 2] = ["--pod-ip", "127.0.0.1"];

/// What an agent took while its VMs had nothing to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtRest {
    pub(crate) vms: usize,
    pub(crate) elsewhere: usize,
    /// From the start of its process until each VM had a session.
    pub(crate) ready: Duration,
    /// Of a core.
    pub(crate) share: f64,
    pub(crate) resident: Resident,
    /// Files and sockets that it had open.
    pub(crate) descriptors: usize,
}

/// What is there beside the agent that is measured.
struct Scene<'a> {
    installed: Installed<'a>,
    node: String,
    crowd: Arc<Crowd>,
}

/// VMs that are not there, as what runs them sees them.
struct Played(Arc<Crowd>);

/// Measures agents of a cluster, and prints what came of it.
pub(crate) async fn run(rounds: usize) -> Result<()> {
    let plane = ControlPlane::start().await;
    let installed = Installed::on(&plane).await?;
    let space = Space::new(&plane).await;
    let node = space.node("one", "8000", "16Ti").await;
    installed.agent_pod(&node).await;
    let crowd = Arc::new(Crowd::of_objects(MANY).await?);
    let scene = Scene { installed, node, crowd: Arc::clone(&crowd) };
    let _controller = Controller::start(space.client(), space.name(), Played(crowd));

    print::cluster_agent_head()?;
    objects::make(&space, scene.vms(0..FEW, "few")?).await?;
    let few = scene.at_rest(FEW, 0, None).await?;
    objects::make(&space, scene.vms(FEW..MANY, "more")?).await?;
    let many = scene.at_rest(MANY, 0, None).await?;
    let least = scrape::share(MANY, WATCHED).await?;
    let other = Space::new(&plane).await;
    make_elsewhere(&other).await?;
    let changes = JoinSet::from_iter([change(objects::machines(&other))]);
    let beside = scene.at_rest(MANY, ELSEWHERE, Some(many)).await?;
    objects::delete(&space, "more").await?;
    scene.at_rest(FEW, ELSEWHERE, Some(few)).await?;
    print::least(beside.share, least)?;

    let way = Way::to(&plane, 0).await;
    print::cluster_surge(&surge::surge(&scene, &way).await?)?;
    drop(changes);
    alone::run(&scene.installed, rounds).await
}

// === impl Scene ===

impl Scene<'_> {
    /// VMs of the node with these numbers.
    fn vms(&self, numbers: std::ops::Range<usize>, group: &'static str) -> Result<Vec<Vm>> {
        let vm = |index| {
            Ok(Vm {
                name: format!("vm{index}"),
                node: self.node.clone(),
                address: crowd::informant_of(index)?.ip(),
                guest: guest(),
                group,
                is_labelled: false,
            })
        };
        numbers.map(vm).collect()
    }

    /// Starts the agent of the node, and waits until it has a session with so many VMs.
    async fn agent(&self, vms: usize, way: Option<&Way>) -> Result<(Program, Duration)> {
        self.crowd.left();
        let begun = Instant::now();
        let mut program = self.installed.agent(&self.node, way, &REACHED).await?;
        while self.crowd.resumed() < vms {
            program.check()?;
            let resumed = self.crowd.resumed();
            ensure!(begun.elapsed() < PATIENCE, "{resumed} of {vms} sessions\n{}", program.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok((program, begun.elapsed()))
    }

    /// Watches the agent of so many VMs, and prints what it took, compared with that.
    async fn at_rest(&self, vms: usize, elsewhere: usize, alone: Option<AtRest>) -> Result<AtRest> {
        let (program, ready) = self.agent(vms, None).await?;
        tokio::time::sleep(SETTLED).await;
        let (from, before) = (Instant::now(), program.cpu()?);
        tokio::time::sleep(WATCHED).await;
        let cpu = program.cpu()?.saturating_sub(before);
        let took = AtRest {
            vms,
            elsewhere,
            ready,
            share: cpu.as_secs_f64() / from.elapsed().as_secs_f64(),
            resident: program.resident()?,
            descriptors: program.descriptors()?,
        };
        print::at_rest(took, alone.unwrap_or(took))?;
        Ok(took)
    }
}

// === impl Played ===

impl Hypervisor for Played {
    async fn resize(&self, vm: &str, to: Amounts) -> Result<Amounts> {
        let index = vm.trim_start_matches("vm").parse().context("not one of ours")?;
        self.0.resize(index, u64::try_from(to.cpu / 1000)?, u64::try_from(to.memory)?)?;
        Ok(to)
    }
}

/// `spec.guest` of a VM that is not there: a unit is a vCPU and a slot of memory.
fn guest() -> serde_json::Value {
    let counts = json!({"min": 1, "max": MOST, "use": 1});
    json!({"cpus": counts, "memorySlots": counts, "memorySlotSize": format!("{UNIT_MIB}Mi")})
}

/// Makes VMs of other nodes, whose agents have labelled them.
async fn make_elsewhere(space: &Space<'_>) -> Result<()> {
    let mut nodes = Vec::new();
    for index in 0..ELSEWHERE.div_ceil(EACH) {
        nodes.push(space.node(&format!("n{index}"), "800", "2Ti").await);
    }
    let vms = (0..ELSEWHERE).map(|index| Vm {
        name: format!("other{index}"),
        node: nodes[index / EACH].clone(),
        address: [10, 0, 0, 1].into(),
        guest: guest(),
        group: "elsewhere",
        is_labelled: true,
    });
    objects::make(space, vms).await
}

/// Changes what VMs of other nodes show, one after another.
async fn change(machines: kube::Api<kube::api::DynamicObject>) {
    let mut turns = tokio::time::interval(CHANGE);
    for index in (0..ELSEWHERE).cycle() {
        turns.tick().await;
        let note = json!({"status": {"note": format!("{:?}", Instant::now())}});
        let (params, name) = (PatchParams::default(), format!("other{index}"));
        // What it is answered does not matter.
        let _answer = machines.patch_status(&name, &params, &Patch::Merge(&note)).await;
    }
}
