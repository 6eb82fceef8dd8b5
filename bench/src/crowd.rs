//! Many VMs that are not there: an informant each, and a monitor or an object of a cluster, as an agent sees them.
//!
//! Each does what it is told at once and agrees to everything. Its load goes up and down with time,
//! half of the VMs against the other half, or comes to all of them when that is said: what is measured is
//! the agent, at rest and at work.

mod informant;
mod monitor;

use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const MIB: u64 = 1 << 20;
pub(crate) const UNIT_MIB: u64 = 1024;
/// The most compute units that a VM may have.
pub(crate) const MOST: u64 = 4;
/// Compute units that a VM with work to do needs: its load is 2.5, and the target 0.9.
pub(crate) const WORK: u64 = 3;
/// How long the load of a VM stays as it is.
pub(crate) const PHASE: Duration = Duration::from_secs(30);
/// The port of an informant.
const PORT: u16 = 10301;

/// VMs that are not there. They end with this value.
pub(crate) struct Crowd {
    vms: Vec<Vm>,
    _serving: JoinSet<Result<()>>,
}

/// One of them, as seen from outside.
struct Vm {
    name: String,
    /// `None`: its object says what it is to have.
    monitor: Option<PathBuf>,
    informant: SocketAddr,
    machine: Arc<Mutex<Machine>>,
}

/// What a VM has.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// vCPUs that are plugged.
    plugged: u64,
    /// vCPUs that the guest may use.
    allowed: u64,
    /// Memory above what it booted with, in bytes.
    added: u64,
    /// How often a size was asked for.
    resized: u64,
    /// Whether an agent took its `/resume`.
    resumed: bool,
    /// How often an agent registered.
    registered: u64,
    work: Work,
    /// When it had all vCPUs and memory for the load that came when it was said.
    grown: Option<Instant>,
}

/// When a VM has work to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// In every other [`PHASE`] since this moment, beginning with work if it is eager.
    Alternates { since: Instant, eager: bool },
    /// Since it was said, or not yet.
    Said(bool),
}

// === impl Crowd ===

impl Crowd {
    /// So many VMs whose load goes up and down, with their monitors in this folder.
    pub(crate) async fn alternating(count: usize, folder: &Path) -> Result<Self> {
        let since = Instant::now();
        let work = |vm| Work::Alternates { since, eager: vm % 2 == 0 };
        Self::start(count, Some(folder), work).await
    }

    /// So many VMs that have nothing to do until [`Crowd::load`].
    pub(crate) async fn idle(count: usize, folder: &Path) -> Result<Self> {
        Self::start(count, Some(folder), |_| Work::Said(false)).await
    }

    /// The same without monitors: whoever carries out what their objects say calls [`Crowd::resize`].
    pub(crate) async fn of_objects(count: usize) -> Result<Self> {
        Self::start(count, None, |_| Work::Said(false)).await
    }

    async fn start(
        count: usize,
        folder: Option<&Path>,
        work: impl Fn(usize) -> Work,
    ) -> Result<Self> {
        let mut serving = JoinSet::new();
        let mut vms = Vec::with_capacity(count);
        for index in 0..count {
            let name = format!("vm{index}");
            let monitor = folder.map(|folder| folder.join(format!("{name}.qmp")));
            let informant = informant_of(index)?;
            let machine = Arc::new(Mutex::new(Machine::new(work(index))));
            if let Some(monitor) = &monitor {
                serving.spawn(monitor::serve(monitor.clone(), Arc::clone(&machine))?);
            }
            serving.spawn(informant::serve(informant, Arc::clone(&machine)).await?);
            vms.push(Vm { name, monitor, informant, machine });
        }
        Ok(Self { vms, _serving: serving })
    }

    /// Writes a VM file for each.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        for vm in &self.vms {
            let mut text = String::new();
            let monitor = vm.monitor.as_ref().context("a VM without a monitor")?;
            writeln!(text, "qmp = {monitor:?}\ninformant = \"{}\"", vm.informant)?;
            writeln!(text, "memory_slot = \"{UNIT_MIB}MiB\"\nadvertise = \"127.0.0.1\"")?;
            writeln!(text, "[min]\ncpu = 1\nmemory = \"{UNIT_MIB}MiB\"")?;
            writeln!(text, "[max]\ncpu = {MOST}\nmemory = \"{}MiB\"", MOST * UNIT_MIB)?;
            writeln!(text, "[scale_down]\ncpu = \"0s\"\nmemory = \"0s\"")?;
            fs::write(folder.join(format!("{}.toml", vm.name)), text)?;
        }
        Ok(())
    }

    /// How many have an agent that acts.
    pub(crate) fn resumed(&self) -> usize {
        self.vms.iter().filter(|vm| lock(&vm.machine).resumed).count()
    }

    /// No agent acts for them any more.
    pub(crate) fn left(&self) {
        self.vms.iter().for_each(|vm| lock(&vm.machine).resumed = false);
    }

    /// How often an agent registered with one of them.
    pub(crate) fn registered(&self) -> u64 {
        self.vms.iter().map(|vm| lock(&vm.machine).registered).sum()
    }

    /// One of them has so many vCPUs and so much memory from now on.
    pub(crate) fn resize(&self, index: usize, vcpus: u64, memory: u64) -> Result<()> {
        let vm = self.vms.get(index).context("no such VM")?;
        let (mut machine, added) = (lock(&vm.machine), memory.saturating_sub(UNIT_MIB * MIB));
        if (machine.plugged, machine.added) != (vcpus, added) {
            (machine.plugged, machine.added) = (vcpus, added);
            machine.was_resized();
        }
        Ok(())
    }

    /// All of them have work to do from now on.
    pub(crate) fn load(&self) -> Instant {
        let now = Instant::now();
        for vm in &self.vms {
            let mut machine = lock(&vm.machine);
            (machine.work, machine.resized) = (Work::Said(true), 0);
        }
        now
    }

    /// When each that has grown had what its load calls for.
    pub(crate) fn grown(&self) -> Vec<Instant> {
        self.vms.iter().filter_map(|vm| lock(&vm.machine).grown).collect()
    }

    /// How often all of them together were given a size.
    pub(crate) fn resized(&self) -> u64 {
        self.vms.iter().map(|vm| lock(&vm.machine).resized).sum()
    }
}

// === impl Machine ===

impl Machine {
    fn new(work: Work) -> Self {
        let (plugged, allowed, added, resized) = (1, 1, 0, 0);
        let (resumed, registered, grown) = (false, 0, None);
        Self { plugged, allowed, added, resized, resumed, registered, work, grown }
    }

    /// A size was asked for, and is there.
    fn was_resized(&mut self) {
        self.resized += 1;
        if self.plugged >= WORK && self.added >= (WORK - 1) * UNIT_MIB * MIB {
            self.grown.get_or_insert_with(Instant::now);
        }
    }

    /// vCPUs in use.
    fn online(&self) -> u64 {
        self.plugged.min(self.allowed)
    }

    /// What its guest reports: an even load of three vCPUs' work, or next to none.
    fn load(&self) -> f64 {
        let works = match self.work {
            Work::Alternates { since, eager } => {
                (since.elapsed().as_secs() / PHASE.as_secs()).is_multiple_of(2) == eager
            }
            Work::Said(works) => works,
        };
        if works { 2.5 } else { 0.1 }
    }

    fn memory(&self) -> u64 {
        UNIT_MIB * MIB + self.added
    }
}

fn lock(machine: &Mutex<Machine>) -> std::sync::MutexGuard<'_, Machine> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the informant of one of them listens.
pub(crate) fn informant_of(index: usize) -> Result<SocketAddr> {
    Ok(SocketAddr::from((address(index)?, PORT)))
}

/// A loopback address of its own for each.
fn address(index: usize) -> Result<Ipv4Addr> {
    let [third, fourth] = [index / 250, index % 250 + 1].map(u8::try_from);
    Ok(Ipv4Addr::new(127, 77, third.context("too many VMs")?, fourth.context("too many VMs")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_an_address_of_its_own() {
        let all: std::collections::BTreeSet<_> = (0..1000).map(|n| address(n).unwrap()).collect();
        assert_eq!(all.len(), 1000);
        assert!(address(1 << 20).is_err());
    }

    #[test]
    fn what_is_not_allowed_is_not_in_use() {
        let mut machine = Machine::new(Work::Said(true));
        machine.plugged = 3;
        assert_eq!(machine.online(), 1);
        machine.allowed = 4;
        assert_eq!(machine.online(), 3);
    }
}
