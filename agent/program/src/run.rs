//! Puts the parts of the agent together, runs them, and ends them in order.

use crate::args::Args;
use crate::billing;
use crate::config::AgentConfig;
use crate::keeper::{BlockingTasks, Keeper};
use crate::metrics::{self, Files};
use crate::state::State;
use clap::Parser;
use clap::error::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_agent::{Agent, Config, NullLedger, Remote};
use windlass_kit::admin::{self, Admin, OwnerSocket, Readiness};
use windlass_kit::clock::Clock;
use windlass_kit::dump_state::{self, DumpState};
use windlass_kit::notify::Notify;
use windlass_kit::problem::Problem;
use windlass_kit::program::{self, Failure, listen};
use windlass_kit::server::{Limits, serve};
use windlass_kit::signal::{Hangups, stop_on_signal};
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::{self, LogLevel};
use windlass_kit::watchdog::Watchdog;
use windlass_vm_files::folder::Folder;

/// What everything together may take to end; the agent takes leave of its guests meanwhile.
const GRACE: Duration = Duration::from_secs(8);

/// Parses the command line, runs until told to end, and gives the exit code.
pub fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => program::end("windlass-agent", start(args)),
        Err(error) => {
            // Nothing is left to tell to whom, if the terminal is gone.
            let _ = error.print();
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                ExitCode::SUCCESS
            } else {
                Failure::Usage(String::new()).code()
            }
        }
    }
}

fn start(args: Args) -> Result<(), Failure> {
    let config = args.read()?;
    let log_level = telemetry::init(args.log_format, &args.log)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    program::block_on(run(args, config, log_level))
}

async fn run(args: Args, config: AgentConfig, log_level: LogLevel) -> Result<(), Failure> {
    let (clock, tasks) = (Clock::system(), Tasks::default());
    for Problem { field, value, limit } in &config.adjusted {
        warn!(field, value, limit, "a value of the configuration is valid and counts as another");
    }
    let hangups = stop_on_signal(&tasks)
        .and_then(|()| Hangups::listen())
        .map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))?;
    // First what only one process can have: a second agent ends here and has touched nothing.
    let (admin_listener, admin_at) = listen("admin", config.admin).await?;
    let admin_socket = OwnerSocket::listen(args.admin_socket.as_deref()).await?;
    let dump = match config.dump_state {
        Some((at, limit)) => Some((listen("dump_state", at).await?, limit)),
        None => None,
    };
    let state = State::open(&config.state_dir).map_err(|error| {
        let folder = config.state_dir.display();
        Failure::CannotCreate(format!("cannot use the state_dir {folder}: {error}"))
    })?;

    let permits = Arc::new(Remote::new(config.plugin.clone(), config.times.permit));
    let watchdog = Watchdog::default();
    let told = told(&config, &state, watchdog.clone());
    let agent = Agent::new(told, permits, Arc::new(NullLedger), &tasks, clock);
    let (files, stop) = (Files::default(), tasks.stopping());
    let refusals = agent.metrics().refusals();
    let mut said = String::new();
    if let Some(((listener, at), limit)) = dump {
        said.push_str(&format!("dump-state http://{at}\n"));
        let (of, stopping) = (agent.clone(), stop.clone());
        let plugin = config.plugin.address().ip();
        let state =
            DumpState::new(limit, move || of.reference_dump(stopping.is_cancelled(), plugin));
        let limits = Limits {
            connections: 8,
            request_time: limit + Duration::from_secs(5),
            ..Limits::small(refusals.clone())
        };
        let served = serve(listener, dump_state::router(state), limits, CancellationToken::new());
        // Of no group that is drained: the state can be looked at until the very end.
        Tasks::default().minor("dump-state", served);
    }
    let mut registry = metrics::registry(agent.metrics(), &files, &watchdog);
    let figures = windlass_agent_billing::Metrics::default();
    let billing = billing::open(&config, clock, figures.clone())?;
    if billing.is_some() {
        figures.register(&mut registry);
    }
    let registry = Arc::new(registry);
    let pulse = watchdog.watch("keeper");
    let change_level = OwnerSocket::change_level(admin_socket.as_ref());
    let (readiness, dog) = (Readiness::default(), watchdog.clone());
    let admin = Admin { readiness, registry, log_level, watchdog: dog, change_level };
    admin::start(admin, admin_listener, admin_socket, &Limits::small(refusals), &tasks);
    let folder = Folder::with_usual(&config.vms_dir, config.usual);
    let node = args.node_name.clone().unwrap_or_default();
    info!(node, plugin = %config.plugin, admin = %admin_at, "starting");
    let listed = Arc::<AtomicBool>::default();
    let sizes = billing::sizes(agent.clone(), listed.clone(), clock, figures);
    let (args, unwritten, blocking) = (Arc::new(args), false, BlockingTasks::default());
    let mut keeper =
        Keeper { agent, args, config, folder, state, files, listed, unwritten, blocking };
    stop.run_until_cancelled(keeper.begin()).await;
    if let Some(billing) = billing {
        billing.start(sizes, clock, &tasks);
    }
    tasks.vital("keeper", keeper.run(hangups, pulse, stop.clone()));
    let systemd = Notify::from_env();
    tasks.vital("watchdog", watchdog.run(systemd.clone(), stop.clone()));
    info!("ready");
    systemd.ready();
    program::say(&format!("{said}admin http://{admin_at}\nready\n"))?;

    stop.cancelled().await;
    program::drain(&tasks, GRACE).await
}

/// What the agent is told once.
fn told(config: &AgentConfig, state: &State, watchdog: Watchdog) -> Config {
    Config {
        trust_guest_parking: config.trust_guest_parking,
        callback_listen: config.callback_listen,
        callback_ports: config.callback_ports.clone(),
        kept_ports: state.ports().clone(),
        times: config.times,
        periods: config.periods,
        silence: config.silence,
        watchdog,
        ..Config::new(config.unit)
    }
}
