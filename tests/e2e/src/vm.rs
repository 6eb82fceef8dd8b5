//! A VM of a test: the guest that the lab boots, and the file that Windlass reads.

use crate::Spoken;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use windlass_lab::{Extension, GuestSpec};

/// What a VM is to be. Memory is counted in compute units' shares of it: 256 MiB.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// Its name.
    pub name: &'static str,
    /// `act` or `observe`.
    pub mode: &'static str,
    /// Memory that it boots with, and the least that it may have.
    pub boot: u32,
    /// Compute units that it should have at least, where that is more than it boots with.
    pub least: u32,
    /// The most memory that it may have.
    pub most: u32,
    /// The most vCPUs that it may have.
    pub most_cpus: u32,
    /// Over which time its load is averaged; here and below, `None` says nothing of it.
    pub window: Option<&'static str>,
    /// Which load per vCPU is aimed at.
    pub load_target: Option<f64>,
    /// Which use of its memory is aimed at.
    pub memory_target: Option<f64>,
    /// How long it keeps what it does not need.
    pub scale_down: Option<&'static str>,
    /// Whether a restart of the guest restarts it, or ends QEMU.
    pub reboots: bool,
    /// Whether its memory grows by DIMMs, and not by virtio-mem.
    pub dimms: bool,
    /// Whether a proxy stands before the monitor that Windlass has.
    pub proxied: bool,
    /// How many agents it is to be offered to.
    pub monitors: usize,
    /// Whether its QEMU has a cgroup of its own.
    pub group: bool,
    /// The least CPU, in thousandths, where that is no whole number of compute units.
    pub least_milli: Option<u32>,
    /// `cpu_limit`, where its file says it.
    pub limit: Option<&'static str>,
    /// Whether a relay stands before its informant.
    pub relayed: bool,
}

/// Memory of a compute unit, in MiB.
pub(crate) const UNIT_MIB: u32 = 256;

/// DIMMs of one unit that a guest with DIMMs has room for.
const DIMM_SLOTS: u32 = 4;

/// Shares in a GiB.
pub(crate) const GIB: u32 = 1024 / UNIT_MIB;

/// Memory that a guest with virtio-mem can be given at least, so that most are of one kind.
const VIRTIO_MEM_MIB: u32 = 1024;

/// Load per vCPU that is aimed at. An idle guest on a crowded machine has a load of almost one;
/// four processes that compute call for three vCPUs.
const LOAD_TARGET: f64 = 1.5;

// === impl Vm ===

impl Vm {
    /// From one to three compute units.
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            mode: "act",
            boot: 1,
            least: 1,
            most: 3,
            most_cpus: 3,
            window: Some("5s"),
            load_target: Some(LOAD_TARGET),
            memory_target: Some(0.75),
            scale_down: Some("0s"),
            reboots: false,
            dimms: false,
            proxied: false,
            monitors: 1,
            group: false,
            least_milli: None,
            limit: None,
            relayed: false,
        }
    }

    /// From this much CPU, in thousandths, to so many vCPUs, in a cgroup of its own. Its memory stays.
    pub fn limited(name: &'static str, least_milli: u32, most_cpus: u32) -> Self {
        let least_milli = Some(least_milli);
        Self { group: true, least_milli, most: 1, most_cpus, ..Self::named(name) }
    }

    /// From one to three times 1 vCPU and 1 GiB, and nothing else said that has a default.
    pub fn with_defaults(name: &'static str) -> Self {
        Self {
            boot: GIB,
            most: 3 * GIB,
            window: None,
            load_target: None,
            memory_target: None,
            scale_down: None,
            ..Self::named(name)
        }
    }

    /// The guest, with an informant that speaks this.
    pub(crate) fn spec(&self, spoken: Spoken) -> GuestSpec {
        let boot_mib = self.boot * UNIT_MIB;
        let Self { reboots, monitors, group, .. } = *self;
        let versions = spoken.limit();
        let named = GuestSpec::named(self.name);
        let mib = (self.most * UNIT_MIB).saturating_sub(boot_mib).max(VIRTIO_MEM_MIB);
        let extension = Extension::VirtioMem { mib };
        let spec = GuestSpec { boot_mib, reboots, monitors, versions, extension, group, ..named };
        if self.dimms {
            let extension = Extension::Dimms { slots: DIMM_SLOTS, mib: DIMM_SLOTS * UNIT_MIB };
            return GuestSpec { extension, ..spec };
        }
        spec
    }

    /// The VM file.
    pub(crate) fn text(&self, informant: SocketAddr, monitor: &Path) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &dyn std::fmt::Debug| {
            writeln!(text, "{key} = {value:?}").expect("a string takes what is written to it");
        };
        line("qmp", &monitor);
        line("informant", &informant.to_string());
        line("mode", &self.mode);
        match self.least_milli {
            Some(milli) => line("min.cpu", &(f64::from(milli) / 1000.0)),
            None => line("min.cpu", &self.least),
        }
        line("min.memory", &format!("{}MiB", self.boot.max(self.least) * UNIT_MIB));
        line("max.cpu", &self.most_cpus);
        line("max.memory", &format!("{}MiB", self.most * UNIT_MIB));
        if let Some(limit) = self.limit {
            line("cpu_limit", &limit);
        }
        if let Some(window) = self.window {
            line("load_window", &window);
        }
        if let Some(load) = self.load_target {
            line("target.load_average", &load);
        }
        if let Some(memory) = self.memory_target {
            line("target.memory", &memory);
        }
        if let Some(time) = self.scale_down {
            line("scale_down.cpu", &time);
            line("scale_down.memory", &time);
        }
        text
    }
}
