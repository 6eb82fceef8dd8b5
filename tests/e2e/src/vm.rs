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
    /// Over which time its load is averaged.
    pub window: &'static str,
    /// Which use of its memory is aimed at.
    pub memory_target: f64,
    /// How long it keeps what it does not need.
    pub scale_down: &'static str,
    /// Whether a restart of the guest restarts it, or ends QEMU.
    pub reboots: bool,
    /// Whether its memory grows by DIMMs, and not by virtio-mem.
    pub dimms: bool,
    /// Whether a proxy stands before the monitor that Windlass has.
    pub proxied: bool,
    /// How many agents it is to be offered to.
    pub monitors: usize,
}

/// Memory of a compute unit, in MiB.
pub(crate) const UNIT_MIB: u32 = 256;

/// DIMMs of one unit that a guest with DIMMs has room for.
const DIMM_SLOTS: u32 = 4;

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
            window: "5s",
            memory_target: 0.75,
            scale_down: "0s",
            reboots: false,
            dimms: false,
            proxied: false,
            monitors: 1,
        }
    }

    /// The guest, with an informant that speaks this.
    pub(crate) fn spec(&self, spoken: Spoken) -> GuestSpec {
        let boot_mib = self.boot * UNIT_MIB;
        let Self { reboots, monitors, .. } = *self;
        let versions = spoken.limit();
        let named = GuestSpec::named(self.name);
        let spec = GuestSpec { boot_mib, reboots, monitors, versions, ..named };
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
        line("load_window", &self.window);
        line("min.cpu", &self.least);
        line("min.memory", &format!("{}MiB", self.boot.max(self.least) * UNIT_MIB));
        line("max.cpu", &self.most_cpus);
        line("max.memory", &format!("{}MiB", self.most * UNIT_MIB));
        line("target.load_average", &LOAD_TARGET);
        line("target.memory", &self.memory_target);
        line("scale_down.cpu", &self.scale_down);
        line("scale_down.memory", &self.scale_down);
        text
    }
}
