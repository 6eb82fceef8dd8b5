//! How soon a guest grows, beside another windlass in the same run.
//!
//! Each windlass has a host and two guests with its own informant: one takes memory in bursts, the
//! other computes. What is no longer called for is given back as it is by default. The guests have
//! their turns one after another, and a guest is at rest before its turn: so both sides see the
//! same machine in the same minutes.

use crate::burst::{self, BOOT_MIB, By, LOOK};
use crate::host::{self, Host};
use crate::print;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windlass_lab::{Guest, GuestSpec, Inside, Lab, wait};

/// Processes that compute, in a guest of one vCPU that may have three.
const WORKERS: u32 = 4;
/// After a guest has given back its vCPUs: that makes load of its own. What it computed is long past.
const IDLE: Duration = Duration::from_secs(5);
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(240);

/// What one side took: a time per round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grown {
    /// From load to the first vCPU more that the guest uses.
    pub(crate) cpu: Vec<Duration>,
    /// From the urgency threshold to memory that the guest's kernel manages.
    pub(crate) memory: Vec<Duration>,
}

/// One of the two, with its guests.
struct Side {
    host: Host,
    computes: Guest,
    bursts: Guest,
    grown: Grown,
}

pub(crate) async fn run(rounds: usize, against: &Path) -> Result<()> {
    let lab = tokio::task::spawn_blocking(Lab::prepared).await??;
    let windlass = host::binary()?;
    print::conditions(rounds, &lab, &windlass)?;
    let other = lab.clone().with_informant(&there(against, "windlass-informant")?);
    let mut ours = Side::start("ours", &lab, &windlass).await?;
    let mut before = Side::start("other", &other, &there(against, "windlass")?).await?;
    for round in 1..=rounds {
        // Who went first last time goes second.
        let sides =
            if round % 2 == 0 { [&mut ours, &mut before] } else { [&mut before, &mut ours] };
        for side in sides {
            side.round().await.with_context(|| side.host.log())?;
        }
        print::grown_round(round, &ours.grown, &before.grown)?;
    }
    print::grown(&ours.grown, &before.grown)
}

fn there(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    ensure!(path.is_file(), "--against: {} is not there", path.display());
    Ok(path)
}

// === impl Side ===

impl Side {
    async fn start(name: &str, lab: &Lab, windlass: &Path) -> Result<Self> {
        let named = |what: &str| GuestSpec {
            boot_mib: BOOT_MIB,
            ..GuestSpec::named(&format!("{name}-{what}"))
        };
        let guests = Guest::boot_all(lab, [named("computes"), named("bursts")]).await?;
        let [computes, bursts] =
            <[Guest; 2]>::try_from(guests).ok().context("two guests were booted")?;
        let vms = [host::load_text(&computes), host::burst_text(&bursts, "")];
        let host = Host::start(windlass, &vms).await?;
        Ok(Self { host, computes, bursts, grown: Grown::default() })
    }

    async fn round(&mut self) -> Result<()> {
        self.grown.cpu.push(load(&self.computes).await?);
        self.grown.memory.push(burst::burst_and_rest(&self.bursts, By::Windlass).await?.usable);
        Ok(())
    }
}

/// Makes an idle guest compute until it has a vCPU more.
async fn load(guest: &Guest) -> Result<Duration> {
    let small = |inside: &Inside| inside.cpus_online == Some(1);
    wait::until("one vCPU in use", PATIENCE, || guest.inside(), small).await?;
    tokio::time::sleep(IDLE).await;
    let begun = Instant::now();
    guest.cpu(WORKERS).await?;
    while guest.inside().await?.cpus_online <= Some(1) {
        ensure!(begun.elapsed() < PATIENCE, "no vCPU more for {PATIENCE:?}");
        tokio::time::sleep(LOOK).await;
    }
    let took = begun.elapsed();
    guest.cpu(0).await?;
    Ok(took)
}
