//! How soon a guest grows, beside another windlass in the same run.
//!
//! Each windlass has a host and two guests with its own informant: one takes memory in bursts, the
//! other computes. What is no longer called for is given back at once: a guest that grows and shrinks
//! twenty times would be held for ever longer. The guests have their turns one after another, and a
//! guest is at rest before its turn: so both sides see the same machine in the same minutes.

use crate::burst::{self, BOOT_MIB, By, LOOK};
use crate::host::{self, AT_ONCE, Host};
use crate::print;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use windlass_lab::{Guest, GuestSpec, Lab};

/// Processes that compute, in a guest of one vCPU that may have three.
const WORKERS: u32 = 4;
/// After a guest has given back its vCPUs: that makes load of its own. What it computed is long past.
const IDLE: Duration = Duration::from_secs(5);
/// Boot memory of the guest that computes. What an idle guest of this size uses calls for one unit, and
/// so for one vCPU; in a larger one the kernel's own share calls for two.
pub(crate) const COMPUTES_MIB: u32 = 512;
/// Between two looks at a guest that is to come to rest: a look is work for the guest.
const SELDOM: Duration = Duration::from_secs(1);
/// Bursts of a round. Where between two looks of the informant a burst crosses the threshold is chance,
/// and that chance is as large as the whole time: the median of few bursts says nothing.
pub(crate) const BURSTS: usize = 5;
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(240);

/// What one side took, in the order in which it happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grown {
    /// From load to the first vCPU more that the guest uses: one a round.
    pub(crate) cpu: Vec<Duration>,
    /// From the urgency threshold to memory that the guest's kernel manages: [`BURSTS`] a round.
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

/// Whether this windlass keeps for a while what is no longer called for.
fn keeps(windlass: &Path) -> Result<bool> {
    let keys = Command::new(windlass).args(["check", "--keys"]).output()?;
    Ok(String::from_utf8_lossy(&keys.stdout).contains("scale_down"))
}

fn there(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    ensure!(path.is_file(), "--against: {} is not there", path.display());
    Ok(path)
}

// === impl Side ===

impl Side {
    async fn start(name: &str, lab: &Lab, windlass: &Path) -> Result<Self> {
        let named = |what: &str, boot_mib| GuestSpec {
            boot_mib,
            ..GuestSpec::named(&format!("{name}-{what}"))
        };
        let guests = [named("computes", COMPUTES_MIB), named("bursts", BOOT_MIB)];
        let guests = Guest::boot_all(lab, guests).await?;
        let [computes, bursts] =
            <[Guest; 2]>::try_from(guests).ok().context("two guests were booted")?;
        let at_once = if keeps(windlass)? { AT_ONCE } else { "" };
        let vms =
            [host::load_text(&computes, COMPUTES_MIB, at_once), host::burst_text(&bursts, at_once)];
        let host = Host::start(windlass, &vms).await?;
        Ok(Self { host, computes, bursts, grown: Grown::default() })
    }

    async fn round(&mut self) -> Result<()> {
        self.grown.cpu.push(load(&self.computes).await?);
        for _ in 0..BURSTS {
            let met = burst::burst_and_rest(&self.bursts, By::Windlass).await?;
            self.grown.memory.push(met.usable);
        }
        Ok(())
    }
}

/// Makes an idle guest compute until it has a vCPU more.
pub(crate) async fn load(guest: &Guest) -> Result<Duration> {
    let waited = Instant::now();
    while guest.inside().await?.cpus_online != Some(1) {
        ensure!(waited.elapsed() < PATIENCE, "more than one vCPU in use for {PATIENCE:?}");
        tokio::time::sleep(SELDOM).await;
    }
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
