//! Puts the parts of a host together, runs them, and ends them in order.

use super::config::HostConfig;
use super::desk::Desk;
use super::folder::Folder;
use super::history::History;
use super::http::{self, Door};
use super::ledger::HostLedger;
use super::metrics::Metrics;
use super::permits::InMemory;
use super::reach::Findings;
use super::room::Machine;
use super::socket;
use super::state::State;
use super::steward::Steward;
use crate::api::HostFacts;
use crate::failure::Failure;
use crate::out;
use crate::problem::{Problem, Report};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};
use windlass_agent::{Agent, Config};
use windlass_kit::admin::{self, Admin, Readiness};
use windlass_kit::clock::Clock;
use windlass_kit::program;
use windlass_kit::server::{Counts, Limits, serve as serve_http};
use windlass_kit::signal::{Hangups, stop_on_signal};
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;
use windlass_plugin::Shared;
use windlass_plugin_core::Books;
use windlass_protocol::VmName;

/// What everything together may take to end; the agent takes leave of its guests meanwhile.
const GRACE: Duration = Duration::from_secs(8);

/// What was read from the state directory.
struct Kept {
    state: State,
    history: History,
    reports: BTreeMap<&'static str, Report>,
}

/// Runs a host until it is told to end.
pub(super) async fn serve(
    config: HostConfig,
    config_path: PathBuf,
    log_level: LogLevel,
) -> Result<(), Failure> {
    let (clock, tasks) = (Clock::system(), Tasks::default());
    let hangups = stop_on_signal(&tasks)
        .and_then(|()| Hangups::listen())
        .map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))?;
    let machine = Machine::here();
    let room = machine
        .room(config.node)
        .map_err(|problem| Failure::Invalid(format!("{}: {problem}", config_path.display())))?;
    // First what only one process can have: a second host ends here and has touched nothing.
    let listener = socket::listen(&config.socket).await?;
    let (admin_listener, admin_address) = program::listen("admin", config.admin).await?;
    let (kept, recalled) = open(&config.state_dir, clock)?;

    let books = Shared::new(Books::new(room), config.unit.usual(), clock);
    let ledger = Arc::new(HostLedger::new(books.clone()));
    let permits = Arc::new(InMemory::new(windlass_plugin::router(books.clone())));
    let agent = Agent::new(told(&config, &kept.state), permits, ledger.clone(), &tasks, clock);
    agent.recall(recalled);
    let (findings, metrics, readiness) =
        (Findings::default(), Metrics::default(), Readiness::default());
    readiness.wait_for("vm files");
    let (desk, orders) = Desk::new();
    let facts = HostFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.now(),
        config: config_path.clone(),
        vms_dir: config.vms_dir.clone(),
        state_dir: config.state_dir.clone(),
        admin: admin_address.to_string(),
    };
    let door = Door {
        agent: agent.clone(),
        books: books.clone(),
        desk,
        clock,
        facts,
        findings: findings.clone(),
    };

    let counts = Counts::default();
    let registry = Arc::new(registry(&agent, &books, &metrics, &counts));
    let watchdog = Watchdog::default();
    let admin = Admin { readiness: readiness.clone(), registry, log_level, watchdog };
    let stop = tasks.stopping();
    let limits = Limits::small(counts.clone());
    tasks.vital("admin", serve_http(admin_listener, admin::router(admin), limits, stop.clone()));
    let limits = socket::limits(counts);
    tasks.vital("socket", serve_http(listener, http::router(door), limits, stop.clone()));

    let path = config.socket.clone();
    let mut steward = Steward {
        clock,
        agent,
        books,
        ledger,
        findings,
        machine,
        config_path,
        folder: Folder::new(&config.vms_dir),
        config,
        state: kept.state,
        history: kept.history,
        reports: kept.reports,
        metrics,
        looks: 0,
    };
    steward.begin();
    tasks.vital("steward", steward.run(orders, hangups, stop.clone()));
    readiness.done("vm files");
    info!(%room, socket = %path.display(), admin = %admin_address, "ready");
    out::text(&format!("socket {}\nadmin http://{admin_address}\nready\n", path.display()))?;

    stop.cancelled().await;
    end(&tasks, &path).await
}

/// Takes leave of everything, and removes the socket.
async fn end(tasks: &Tasks, socket: &Path) -> Result<(), Failure> {
    let drained = program::drain(tasks, GRACE).await;
    let _ = std::fs::remove_file(socket);
    Ok(drained?)
}

/// What was kept over the restart, and the decisions of the last hour.
fn open(
    state_dir: &Path,
    clock: Clock,
) -> Result<(Kept, Vec<windlass_protocol::Decision>), Failure> {
    let failed = |error: io::Error| {
        Failure::CannotCreate(format!("cannot use the state_dir {}: {error}", state_dir.display()))
    };
    let now = clock.now();
    let (state, problem) = State::open(state_dir, now).map_err(failed)?;
    let (history, recalled) = History::open(state_dir, now).map_err(failed)?;
    let mut reports = BTreeMap::new();
    let mut report = |subject, problem: Option<Problem>, meanwhile: &str| {
        let Some(problem) = problem else { return };
        let report = Report {
            subject: format!("{}/{subject}", state_dir.display()),
            problems: vec![problem],
            meanwhile: meanwhile.to_owned(),
        };
        warn!(%report, "not as it was left");
        reports.insert(subject, report);
    };
    report("state.json", problem, "the host is frozen");
    let torn = history.passed_over();
    let torn =
        (torn > 0).then(|| Problem::without_value("", format!("{torn} lines were not understood")));
    report("history/*.jsonl", torn, "they are passed over");
    Ok((Kept { state, history, reports }, recalled))
}

/// What the agent is told once.
fn told(config: &HostConfig, state: &State) -> Config {
    let ports = state.kept().ports.iter();
    Config {
        trust_guest_parking: config.trust_guest_parking,
        callback_listen: config.callback_listen,
        callback_ports: config.callback_ports.clone(),
        kept_ports: ports.map(|(vm, port)| (VmName::on_host(vm.as_str()), *port)).collect(),
        ..Config::new(config.unit)
    }
}

fn registry(
    agent: &Agent<super::reach::Reach>,
    books: &Shared,
    metrics: &Metrics,
    counts: &Counts,
) -> Registry {
    let mut registry = Registry::default();
    agent.metrics().register(&mut registry);
    books.metrics().register(&mut registry);
    metrics.register(&mut registry);
    counts.register(registry.sub_registry_with_prefix("windlass_host"));
    registry
}
