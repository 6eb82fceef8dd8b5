//! host.toml, read again while the host runs: only what may be reserved for VMs changes.

use super::config::HostConfig;
use super::room::Machine;
use tracing::{info, warn};
use windlass_agent_host::Settings;
use windlass_kit::problem::Problem;
use windlass_plugin::Shared;

/// What host.toml says, of this machine and for these books.
pub(super) struct HostSettings {
    pub(super) config: HostConfig,
    pub(super) machine: Machine,
    pub(super) books: Shared,
}

// === impl HostSettings ===

impl Settings for HostSettings {
    fn file(&self) -> &'static str {
        "host.toml"
    }

    fn follow(&mut self, text: &str) -> Result<Vec<&'static str>, Vec<Problem>> {
        let config = HostConfig::from_text(text)?;
        warn_of_overcommitment(self.machine, &config);
        let room = self.machine.room(config.node).map_err(|problem| vec![problem])?;
        self.books.with_books(|books| books.set_room(room));
        info!(%room, "what may be reserved for VMs");
        let waits = config.needs_restart(&self.config);
        self.config.node = config.node;
        Ok(waits)
    }
}

/// Says what host.toml gives VMs beyond what the machine has.
pub(super) fn warn_of_overcommitment(machine: Machine, config: &HostConfig) {
    for problem in machine.overcommitted(config.node) {
        warn!(%problem, "host.toml gives VMs more than this machine has");
    }
}
