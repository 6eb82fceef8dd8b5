//! The parts of a host, put together: who knows whom.
//!
//! What they stand on is given: the clock, the disk, and how VMs are reached. So a test has the
//! same host in memory, under a clock of its own.

use super::config::HostConfig;
use super::desk::Desk;
use super::disk::{Disk, Recalled};
use super::http::Door;
use super::ledger::HostLedger;
use super::metrics::Metrics;
use super::permits::InMemory;
use super::reach::Findings;
use super::room::Machine;
use super::state::State;
use super::steward::{Inbox, Steward, Ways};
use crate::api::HostFacts;
use crate::problem::{Problem, Report};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tracing::warn;
use windlass_agent::{Agent, Config};
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin::Shared;
use windlass_plugin_core::Books;
use windlass_protocol::{Resources, VmName};
use windlass_vm_files::folder::Folder;

/// What a host stands on.
pub(super) struct Given {
    pub(super) config: HostConfig,
    /// What the agent is told besides.
    pub(super) agent: Config,
    pub(super) facts: HostFacts,
    pub(super) machine: Machine,
    pub(super) room: Resources,
    pub(super) clock: Clock,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) recalled: Recalled,
    pub(super) ways: Ways,
    pub(super) watchdog: Watchdog,
    pub(super) log_level: LogLevel,
}

/// The parts of a host.
pub(super) struct Parts {
    pub(super) agent: Agent,
    pub(super) books: Shared,
    pub(super) metrics: Metrics,
    /// For the socket.
    pub(super) door: Door,
    pub(super) steward: Steward,
    pub(super) inbox: Inbox,
}

/// Puts a host together; its VMs are tasks of `tasks`. Nothing is managed before the steward runs.
pub(super) fn assemble(given: Given, tasks: &Tasks) -> Parts {
    let Given { config, agent, facts, machine, room, clock, disk, recalled, .. } = given;
    let (ways, watchdog, log_level) = (given.ways, given.watchdog, given.log_level);
    let Recalled { state, history, decisions, problem } = recalled;
    let reports = reports(&config.state_dir, problem, history.passed_over());
    let books = Shared::new(Books::new(room), config.unit.usual(), clock);
    let ledger = Arc::new(HostLedger::new(books.clone()));
    let permits = Arc::new(InMemory::new(windlass_plugin::router(books.clone())));
    let told = told(agent, &config, &state, watchdog.clone());
    let agent = Agent::new(told, permits, ledger.clone(), tasks, clock);
    agent.recall(decisions);
    let (findings, metrics) = (Findings::default(), Metrics::default());
    let ((desk, orders), (last_order, ordered)) = (Desk::new(clock), watch::channel(None));
    let looked = disk.clone();
    let door = Door {
        agent: agent.clone(),
        books: books.clone(),
        desk,
        clock,
        facts,
        findings: findings.clone(),
        log_level,
        looks: Arc::new(move || looked.look()),
        ordered,
    };
    let steward = Steward {
        clock,
        agent: agent.clone(),
        books: books.clone(),
        ledger,
        findings,
        ways,
        disk,
        watchdog,
        machine,
        folder: Folder::new(&config.vms_dir),
        config,
        state,
        history,
        reports,
        metrics: metrics.clone(),
        releases: BTreeMap::new(),
        last_order,
        looks: 0,
        errands: Default::default(),
        unkept: Vec::new(),
    };
    let inbox = Inbox { orders, reloads: Arc::new(Notify::new()), stop: tasks.stopping() };
    Parts { agent, books, metrics, door, steward, inbox }
}

/// What is not as it was left.
fn reports(
    state_dir: &Path,
    problem: Option<Problem>,
    torn: usize,
) -> BTreeMap<&'static str, Report> {
    let torn =
        (torn > 0).then(|| Problem::without_value("", format!("{torn} lines were not understood")));
    let found = [
        ("state.json", problem, "the host is frozen"),
        ("history/*.jsonl", torn, "they are passed over"),
    ];
    let mut reports = BTreeMap::new();
    for (subject, problem, meanwhile) in found {
        let Some(problem) = problem else { continue };
        let report = Report {
            subject: format!("{}/{subject}", state_dir.display()),
            problems: vec![problem],
            meanwhile: meanwhile.to_owned(),
        };
        warn!(%report, "not as it was left");
        reports.insert(subject, report);
    }
    reports
}

/// What the agent is told once.
fn told(agent: Config, config: &HostConfig, state: &State, watchdog: Watchdog) -> Config {
    let ports = state.kept().ports.iter();
    Config {
        trust_guest_parking: config.trust_guest_parking,
        callback_listen: config.callback_listen,
        callback_ports: config.callback_ports.clone(),
        kept_ports: ports.map(|(vm, port)| (VmName::on_host(vm.as_str()), *port)).collect(),
        watchdog,
        ..agent
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::Kept;
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;
    use windlass_kit::notify;

    #[tokio::test(start_paused = true)]
    async fn the_agent_is_told_what_the_file_says_and_what_was_kept() {
        let text = "trust_guest_parking = true\ncallback_listen = \"127.0.0.9\"\n\
                    callback_ports = \"7-9\"\n";
        let config = HostConfig::from_text(text).unwrap();
        let ports = BTreeMap::from([("db1".to_owned(), 8)]);
        let state = State::of(Kept { ports, ..Kept::default() });
        let watchdog = Watchdog::default();
        let told = told(Config::new(config.unit), &config, &state, watchdog.clone());
        assert!(told.trust_guest_parking);
        assert_eq!(told.callback_listen.to_string(), "127.0.0.9");
        assert_eq!(told.callback_ports, 7..=9);
        assert_eq!(told.kept_ports, BTreeMap::from([(VmName::on_host("db1"), 8)]));
        // A runner that hangs is noticed by the watchdog of the host.
        let _hangs = told.watchdog.watch("runner");
        let turns = watchdog.clone().run(notify::Notify::default(), CancellationToken::new());
        assert!(timeout(Duration::from_secs(20), turns).await.is_err());
        assert_eq!(watchdog.hanging().len(), 1);
    }
}
