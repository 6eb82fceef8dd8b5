//! From host.toml to a host: an agent, and a plugin in the same process.

use super::config::HostConfig;
use super::ledger::HostLedger;
use super::metrics;
use super::permits::InMemory;
use super::room::Machine;
use super::settings::{HostSettings, warn_of_overcommitment};
use crate::failure::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_agent::Config;
use windlass_agent_host::{Composition, Host, Places};
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
    let places = Places {
        // For commands that run in another folder.
        config: std::path::absolute(&path).unwrap_or(path),
        state_dir: config.state_dir.clone(),
        rival: "another `windlass host`",
        vms_dir: config.vms_dir.clone(),
        socket: config.socket.clone(),
        admin: config.admin,
        admin_socket: None,
    };
    let agent = agent(&config);
    let (composition, books) = compose(config, agent, machine, room, clock);
    let host = Host {
        composition,
        places,
        clock,
        log_level,
        dump_state: None,
        start: Box::new(move |parts, registry, _| {
            books.register(registry);
            metrics::register(&parts.figures, registry);
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
    config: HostConfig,
    agent: Config,
    machine: Machine,
    room: Resources,
    clock: Clock,
) -> (Composition, Shared) {
    let books = Shared::new(Books::new(room), config.unit.usual(), clock);
    let ledger = Arc::new(HostLedger::new(books.clone()));
    let composition = Composition {
        agent,
        permits: Arc::new(InMemory::new(books.clone())),
        ledger: ledger.clone(),
        books: Some(ledger),
        settings: Box::new(HostSettings { config, machine, books: books.clone() }),
        usual: Usual::default(),
    };
    (composition, books)
}

/// What the agent is told once.
pub(super) fn agent(config: &HostConfig) -> Config {
    Config {
        trust_guest_parking: config.trust_guest_parking,
        callback_listen: config.callback_listen,
        callback_ports: config.callback_ports.clone(),
        ..Config::new(config.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_told_what_the_file_says() {
        let text = "trust_guest_parking = true\ncallback_listen = \"127.0.0.9\"\n\
                    callback_ports = \"7-9\"\n";
        let told = agent(&HostConfig::from_text(text).unwrap());
        assert!(told.trust_guest_parking);
        assert_eq!(told.callback_listen.to_string(), "127.0.0.9");
        assert_eq!(told.callback_ports, 7..=9);
    }
}
