//! From host.toml to a host: an agent, and a plugin in the same process.
//!
//! host.toml is read again while the host runs: only what may be reserved for VMs changes.

use super::books::HostBooks;
use super::config::HostConfig;
use super::room::Machine;
use crate::failure::Failure;
use crate::problem::Problem;
use prometheus_client::registry::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};
use windlass_agent::Config;
use windlass_agent_host::Settings;
use windlass_agent_host::basics::Basics;
use windlass_agent_host::figures::Figures;
use windlass_agent_host::{Composition, Host};
use windlass_kit::clock::Clock;
use windlass_kit::server::Counts;
use windlass_kit::telemetry::LogLevel;
use windlass_plugin::Shared;
use windlass_plugin_core::Books;
use windlass_protocol::{Resources, Usual};

/// Runs a host until it is told to end.
pub(super) async fn serve(
    config: HostConfig,
    path: PathBuf,
    log_level: LogLevel,
) -> Result<(), Failure> {
    let (clock, machine) = (Clock::system(), Machine::here());
    let room = machine
        .room(config.node)
        .map_err(|problem| Failure::Invalid(format!("{}: {problem}", path.display())))?;
    warn_of_overcommitment(machine, &config);
    let basics = config.basics;
    let (composition, books) = compose(basics.clone(), basics.agent(), machine, room, clock);
    let host = Host {
        composition,
        // For commands that run in another folder.
        config: std::path::absolute(&path).unwrap_or(path),
        basics,
        rival: "another `windlass host`",
        admin_socket: None,
        clock,
        log_level,
        gather: None,
        start: Box::new(move |parts, registry, _| {
            books.register(registry);
            register(&parts.figures, registry);
            let counts = Counts::default();
            counts.register(registry.sub_registry_with_prefix("windlass_host"));
            Ok(counts)
        }),
    };
    Ok(windlass_agent_host::run(host).await?)
}

/// An agent whose permits go through the plugin's codec, called in memory; what it sees goes into
/// the books.
pub(super) fn compose(
    basics: Basics,
    agent: Config,
    machine: Machine,
    room: Resources,
    clock: Clock,
) -> (Composition, Shared) {
    let books = Shared::new(Books::new(room), basics.unit.usual(), clock);
    let own = Arc::new(HostBooks::new(books.clone()));
    let composition = Composition {
        agent,
        permits: own.clone(),
        ledger: own.clone(),
        books: Some(own),
        settings: Box::new(HostSettings { basics, machine, books: books.clone() }),
        usual: Usual::default(),
    };
    (composition, books)
}

/// Exports the host's own figures, besides what its agent and its plugin count.
fn register(figures: &Figures, registry: &mut Registry) {
    let registry = registry.sub_registry_with_prefix("windlass_host");
    registry.register("frozen", "1 while nothing of any VM moves", figures.frozen.clone());
    registry.register("vm_files", "VM files that are in force", figures.vm_files.clone());
    let problems = "Files and other subjects that need a look; `windlass top` names them";
    registry.register("problems", problems, figures.problems.clone());
}

/// What host.toml says, of this machine and for these books; it is followed while the host runs.
struct HostSettings {
    /// As it was read at the start.
    basics: Basics,
    machine: Machine,
    books: Shared,
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
        Ok(config.basics.needs_restart(&self.basics))
    }
}

/// Says what host.toml gives VMs beyond what the machine has.
fn warn_of_overcommitment(machine: Machine, config: &HostConfig) {
    for problem in machine.overcommitted(config.node) {
        warn!(%problem, "host.toml gives VMs more than this machine has");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::CpuLimit;

    #[test]
    fn the_agent_is_told_what_the_file_says() {
        let text = "cpu_limit = \"trust\"\ncallback_listen = \"127.0.0.9\"\n\
                    callback_ports = \"7-9\"\n";
        let config = HostConfig::from_text(text).unwrap();
        let told = config.basics.agent();
        assert_eq!(told.cpu_limit, Some(CpuLimit::Trust));
        assert_eq!(told.callback_listen.to_string(), "127.0.0.9");
        assert_eq!(told.callback_ports, 7..=9);
    }
}
