//! What one agent takes with VMs that are not there: started, at work, and when load comes to all at once.

use crate::crowd::{Crowd, PHASE, WORK};
use crate::plugin::Plugin;
use crate::print;
use crate::program::Program;
use crate::sizes::Resident;
use anyhow::{Result, ensure};
use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use windlass_lab::Folder;

/// How many VMs there are, unless that is said.
const CROWDS: [usize; 3] = [1, 200, 1000];
/// How often metrics are read and sessions are checked: as by default, and as the reference does.
const PERIODS: [(&str, &str); 2] =
    [("default", ""), ("reference", "[periods]\nmetrics = \"5s\"\nhealth = \"5s\"\n")];
/// How long each is watched: both halves of the VMs have work to do for the same time.
pub(crate) const WATCHED: Duration = PHASE.saturating_mul(2);
/// VMs that get load in the same second.
pub(crate) const SURGE: usize = 200;
/// Sizes that each of them is to be given: its vCPUs one by one, and its memory at once.
const SIZES: u64 = WORK;
/// After the last has grown, for whoever asks for something twice.
const AFTER: Duration = Duration::from_secs(10);
/// Until what follows the start of VMs whose load stays is over.
const SETTLED: Duration = Duration::from_secs(20);
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(180);

/// What the load of the VMs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// It stays, and so do their sizes.
    Stays,
    /// It changes all the time, and their sizes follow.
    Changes,
}

/// What an agent took while it was watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) periods: &'static str,
    pub(crate) load: Load,
    pub(crate) vms: usize,
    /// From the start of its process until each VM had a session.
    pub(crate) ready: Duration,
    /// How long it had a core.
    pub(crate) cpu: Duration,
    pub(crate) watched: Duration,
    /// How many sizes it gave.
    pub(crate) resized: u64,
    pub(crate) resident: Resident,
    /// Files and sockets that it had open.
    pub(crate) descriptors: usize,
}

/// How VMs grew that all had load at once.
#[derive(Clone, Debug)]
pub(crate) struct Surge {
    /// From the load of each until it had its size.
    pub(crate) took: Vec<Duration>,
    /// Sizes that were given beyond those that were called for.
    pub(crate) repeated: u64,
}

/// An agent at work for a crowd. It ends before what it is attached to.
struct Agent {
    program: Program,
    crowd: Crowd,
    ready: Duration,
    _plugin: Plugin,
    _folder: Folder,
}

/// Watches agents at work, and prints what they took. `vms`: so many alone.
pub(crate) async fn run(vms: Option<usize>) -> Result<()> {
    let crowds = vms.map_or_else(|| CROWDS.to_vec(), |vms| vec![vms]);
    print::agent_head()?;
    for load in [Load::Stays, Load::Changes] {
        for (periods, text) in PERIODS {
            let mut first = None;
            for vms in crowds.iter().copied() {
                let took = watch(vms, load, periods, text).await?;
                print::agent(took, *first.get_or_insert(took))?;
            }
        }
    }
    print::surge(&surge().await?)
}

async fn watch(vms: usize, load: Load, periods: &'static str, text: &str) -> Result<Took> {
    let folder = Folder::create()?;
    let (crowd, wait) = match load {
        Load::Stays => (Crowd::idle(vms, folder.path()).await?, SETTLED),
        // Until each half has had work to do.
        Load::Changes => (Crowd::alternating(vms, folder.path()).await?, WATCHED),
    };
    let agent = Agent::start(crowd, vms, folder, text).await?;
    tokio::time::sleep(wait).await;
    let (from, cpu, resized) = (Instant::now(), agent.program.cpu()?, agent.crowd.resized());
    tokio::time::sleep(WATCHED).await;
    Ok(Took {
        periods,
        load,
        vms,
        ready: agent.ready,
        cpu: agent.program.cpu()?.saturating_sub(cpu),
        watched: from.elapsed(),
        resized: agent.crowd.resized() - resized,
        resident: agent.program.resident()?,
        descriptors: agent.program.descriptors()?,
    })
}

async fn surge() -> Result<Surge> {
    let folder = Folder::create()?;
    let crowd = Crowd::idle(SURGE, folder.path()).await?;
    let mut agent = Agent::start(crowd, SURGE, folder, "").await?;
    // Until what follows the start is over.
    tokio::time::sleep(WATCHED).await;
    let begun = agent.crowd.load();
    while agent.crowd.grown().len() < SURGE {
        agent.program.check()?;
        let grown = agent.crowd.grown().len();
        ensure!(begun.elapsed() < PATIENCE, "{grown} of {SURGE} grew\n{}", agent.program.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(AFTER).await;
    let took = agent.crowd.grown().into_iter().map(|at| at.duration_since(begun)).collect();
    let repeated = agent.crowd.resized().saturating_sub(SIZES * SURGE as u64);
    Ok(Surge { took, repeated })
}

// === impl Agent ===

impl Agent {
    /// Starts one, and waits until each VM has a session.
    async fn start(crowd: Crowd, vms: usize, folder: Folder, more: &str) -> Result<Self> {
        for name in ["vms.d", "state"] {
            fs::create_dir(folder.path().join(name))?;
        }
        crowd.write(&folder.path().join("vms.d"))?;
        let plugin = Plugin::start(vms)?;
        let place = folder.path().display();
        let (first, last) = free_ports(vms)?;
        let text = format!(
            "plugin = \"http://{}\"\nstate_dir = \"{place}/state\"\nsocket = \"{place}/host.sock\"\nvms_dir = \"{place}/vms.d\"\n\
             admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\n\
             callback_listen = \"127.0.0.1\"\ncallback_ports = \"{first}-{last}\"\n\
             cpu_limit = \"trust\"\n[compute_unit]\ncpu = 1\nmemory = \"1GiB\"\n{more}",
            plugin.permits
        );
        let begun = Instant::now();
        let mut program = Program::start("windlass-agent", Folder::create()?, &text)?;
        while crowd.resumed() < vms {
            program.check()?;
            let resumed = crowd.resumed();
            ensure!(begun.elapsed() < PATIENCE, "{resumed} of {vms} sessions\n{}", program.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let ready = begun.elapsed();
        Ok(Self { program, crowd, ready, _plugin: plugin, _folder: folder })
    }
}

/// So many ports in a row that nobody has.
pub(crate) fn free_ports(count: usize) -> Result<(u16, u16)> {
    let count = u16::try_from(count)?;
    let free = |first: &u16| {
        (*first..*first + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    let first = (12_000..30_000).step_by(500).find(free);
    let first = first.ok_or_else(|| anyhow::anyhow!("no {count} free ports in a row"))?;
    Ok((first, first + count - 1))
}
