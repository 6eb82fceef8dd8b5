//! What one agent takes, with one VM, a hundred and a thousand.

use crate::crowd::{Crowd, PHASE};
use crate::plugin::Plugin;
use crate::print;
use crate::program::Program;
use anyhow::{Result, ensure};
use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use windlass_lab::Folder;

/// How many VMs there are.
const CROWDS: [usize; 3] = [1, 100, 1000];
/// How long each is watched: both halves of the VMs have work to do for the same time.
pub(crate) const WATCHED: Duration = PHASE.saturating_mul(2);

/// What an agent took while it was watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) vms: usize,
    /// How long it had a core.
    pub(crate) cpu: Duration,
    pub(crate) watched: Duration,
    /// How many sizes it gave.
    pub(crate) resized: u64,
    pub(crate) resident: crate::sizes::Resident,
}

/// Watches agents at work, and prints what they took.
pub(crate) async fn run() -> Result<()> {
    print::agent_head()?;
    let mut first = None;
    for vms in CROWDS {
        let took = one(vms).await?;
        print::agent(took, *first.get_or_insert(took))?;
    }
    Ok(())
}

async fn one(vms: usize) -> Result<Took> {
    let folder = Folder::create()?;
    for name in ["vms.d", "state"] {
        fs::create_dir(folder.path().join(name))?;
    }
    let crowd = Crowd::start(vms, folder.path()).await?;
    crowd.write(&folder.path().join("vms.d"))?;
    let plugin = Plugin::start(vms)?;
    let place = folder.path().display();
    let (first, last) = free_ports(vms)?;
    let text = format!(
        "plugin = \"http://{}\"\nstate_dir = \"{place}/state\"\nvms_dir = \"{place}/vms.d\"\n\
         admin = \"127.0.0.1:0\"\ndump_state = \"127.0.0.1:0\"\ncallback_listen = \"127.0.0.1\"\n\
         callback_ports = \"{first}-{last}\"\ntrust_guest_parking = true\n\
         [compute_unit]\ncpu = 1\nmemory = \"1GiB\"\n",
        plugin.permits
    );
    // The agent ends before what it is attached to.
    let mut agent = Program::start("windlass-agent", Folder::create()?, &text)?;
    let begun = Instant::now();
    while crowd.resumed() < vms {
        agent.check()?;
        let resumed = crowd.resumed();
        ensure!(begun.elapsed() < PATIENCE, "{resumed} of {vms} sessions\n{}", agent.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Until each half has had work to do.
    tokio::time::sleep(WATCHED).await;
    let (from, cpu, resized) = (Instant::now(), agent.cpu()?, crowd.resized());
    tokio::time::sleep(WATCHED).await;
    let (cpu, watched) = (agent.cpu()?.saturating_sub(cpu), from.elapsed());
    let resized = crowd.resized() - resized;
    Ok(Took { vms, cpu, watched, resized, resident: agent.resident()? })
}

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// So many ports in a row that nobody has.
fn free_ports(count: usize) -> Result<(u16, u16)> {
    let count = u16::try_from(count)?;
    let free = |first: &u16| {
        (*first..*first + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    let first = (12_000..30_000).step_by(500).find(free);
    let first = first.ok_or_else(|| anyhow::anyhow!("no {count} free ports in a row"))?;
    Ok((first, first + count - 1))
}
