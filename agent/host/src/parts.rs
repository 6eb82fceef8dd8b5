//! The parts of a host, put together: which part knows which.
//!
//! The clock, the disk, and how VMs are reached are arguments. So a test has the same host in memory,
//! under a clock of its own.

use crate::api::HostFacts;
use crate::checked_attach::Findings;
use crate::commands::HostCommands;
use crate::composition::Composition;
use crate::controller::{HostController, Ways};
use crate::disk::{Disk, Recalled};
use crate::figures::Figures;
use crate::http::ApiState;
use crate::problem::{Problem, Report};
use crate::state::State;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Notify, watch};
use tracing::warn;
use windlass_agent::{Agent, Config};
use windlass_kit::clock::Clock;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;
use windlass_protocol::VmName;
use windlass_vm_files::folder::Folder;

/// What a host stands on.
pub struct Setup {
    /// What its program says.
    pub composition: Composition,
    /// What the socket says of the process; also where its files are.
    pub facts: HostFacts,
    /// What time it is.
    pub clock: Clock,
    /// What is read and written.
    pub disk: Arc<dyn Disk>,
    /// What was kept over the restart.
    pub recalled: Recalled,
    /// How VMs are reached.
    pub ways: Ways,
    /// What notices parts that hang.
    pub watchdog: Watchdog,
    /// What is logged.
    pub log_level: LogLevel,
}

/// The parts of a host.
pub struct Parts {
    /// The agent.
    pub agent: Agent,
    /// What is counted besides what the agent counts.
    pub figures: Figures,
    /// Whether it is known which VMs there should be: the VM files were read at least once.
    pub listed: Arc<AtomicBool>,
    /// Notices parts that hang.
    pub watchdog: Watchdog,
    /// For the socket.
    pub api: ApiState,
    /// The task that owns what is written down.
    pub controller: HostController,
}

// === impl Setup ===

impl Setup {
    /// Puts a host together; its VMs are tasks of `tasks`. Nothing is managed before the controller
    /// runs.
    pub fn assemble(self, tasks: &Tasks) -> Parts {
        let Self { composition, facts, clock, disk, recalled, ways, watchdog, log_level } = self;
        let Composition { agent, permits, ledger, books, settings, usual } = composition;
        let Recalled { state, history, decisions, problem } = recalled;
        let reports = reports(&facts.state_dir, problem, history.passed_over);
        let told = told(agent, &state, watchdog.clone());
        let agent = Agent::new(told, permits, ledger, tasks, clock);
        agent.recall(decisions);
        let (findings, figures) = (Findings::default(), Figures::default());
        let listed = Arc::<AtomicBool>::default();
        let ((commands, orders), (last_order, ordered)) =
            (HostCommands::new(clock), watch::channel(None));
        let folder = Folder::with_usual(&facts.vms_dir, usual);
        let looked = disk.clone();
        let api = ApiState {
            agent: agent.clone(),
            books: books.clone(),
            commands: Arc::new(commands),
            clock,
            facts,
            findings: findings.clone(),
            log_level,
            looks: Arc::new(move || looked.look()),
            ordered,
        };
        let controller = HostController {
            clock,
            agent: agent.clone(),
            books,
            findings,
            ways,
            disk,
            watchdog: watchdog.clone(),
            settings,
            folder,
            state,
            history,
            reports,
            figures: figures.clone(),
            releases: BTreeMap::new(),
            last_order,
            listed: listed.clone(),
            looks: 0,
            watching: Default::default(),
            blocking: Default::default(),
            unkept: Vec::new(),
            orders,
            reloads: Arc::new(Notify::new()),
            stop: tasks.stopping(),
        };
        Parts { agent, figures, listed, watchdog, api, controller }
    }
}

/// What the agent is told once: with what was kept, and what notices that a runner hangs.
fn told(agent: Config, state: &State, watchdog: Watchdog) -> Config {
    let ports = state.kept().ports.iter();
    let kept_ports = ports.map(|(vm, port)| (VmName::on_host(vm.as_str()), *port)).collect();
    Config { kept_ports, watchdog, ..agent }
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
    let reports = found.into_iter().filter_map(|(subject, problem, meanwhile)| {
        let report = Report {
            subject: format!("{}/{subject}", state_dir.display()),
            problems: vec![problem?],
            meanwhile: meanwhile.to_owned(),
        };
        warn!(%report, "not as it was left");
        Some((subject, report))
    });
    reports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Kept;
    use std::time::Duration;
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;
    use windlass_kit::notify;
    use windlass_protocol::UnitChoice;

    #[tokio::test(start_paused = true)]
    async fn the_agent_is_told_what_was_kept() {
        let ports = BTreeMap::from([("db1".to_owned(), 8)]);
        let state = State::of(Kept { ports, ..Kept::default() });
        let watchdog = Watchdog::default();
        let told = told(Config::new(UnitChoice::default()), &state, watchdog.clone());
        assert_eq!(told.kept_ports, BTreeMap::from([(VmName::on_host("db1"), 8)]));
        // A runner that hangs is noticed by the watchdog of the host.
        let _hangs = told.watchdog.watch("runner");
        let turns = watchdog.clone().run(notify::Notify::default(), CancellationToken::new());
        assert!(timeout(Duration::from_secs(20), turns).await.is_err());
        assert_eq!(watchdog.hanging().len(), 1);
    }
}
