//! Runs the parts of a host on this machine, and ends them in order.

use super::config::HostConfig;
use super::disk::{MachineDisk, Recalled};
use super::http;
use super::parts::{Given, Parts, assemble};
use super::reach::Reach;
use super::room::Machine;
use super::socket;
use super::steward::Ways;
use super::view;
use crate::api::HostFacts;
use crate::failure::Failure;
use crate::out;
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_drivers_qemu::Qemu;
use windlass_kit::admin::{self, Admin, Readiness};
use windlass_kit::clock::Clock;
use windlass_kit::errand::apart;
use windlass_kit::notify::Notify;
use windlass_kit::program;
use windlass_kit::server::{Counts, Limits, serve as serve_http};
use windlass_kit::signal::{Hangups, stop_on_signal};
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;

/// What everything together may take to end; the agent takes leave of its guests meanwhile.
const GRACE: Duration = Duration::from_secs(8);

/// What a request to change the log level over TCP is told.
const CHANGE_LEVEL: &str = "`windlass log-level LEVEL` does it, over the host's socket";

/// What the disk may take to say what was kept over a restart: nothing is decided without it.
const OPENED_WITHIN: Duration = Duration::from_secs(30);

/// Where a host is reached.
struct Doors {
    socket: UnixListener,
    /// For those who may only look, where it could be had.
    view: Option<UnixListener>,
    admin: TcpListener,
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
    for problem in machine.overcommitted(config.node) {
        warn!(%problem, "host.toml gives VMs more than this machine has");
    }
    // First what only one process can have: a second host ends here and has touched nothing.
    let listener = socket::listen(&config.socket).await?;
    let (admin_listener, admin_address) = program::listen("admin", config.admin).await?;
    let opening = open(&config, &config_path, clock);
    let Some(opened) = tasks.stopping().run_until_cancelled(opening).await else {
        return end(&tasks, &config.socket, false).await;
    };
    let (disk, recalled) = opened?;

    let facts = HostFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.now(),
        config: config_path,
        vms_dir: config.vms_dir.clone(),
        state_dir: config.state_dir.clone(),
        admin: admin_address.to_string(),
        trust_guest_parking: Some(config.trust_guest_parking),
    };
    let (path, ways, watchdog) = (config.socket.clone(), ways(clock), Watchdog::default());
    let disk = Arc::new(disk);
    let agent = windlass_agent::Config::new(config.unit);
    let given = Given {
        config,
        agent,
        facts,
        machine,
        room,
        clock,
        disk,
        recalled,
        ways,
        watchdog,
        log_level,
    };
    let view = view::listen(&path).await;
    let shows = view.is_some();
    let doors = Doors { socket: listener, view, admin: admin_listener };
    let readiness = Readiness::default();
    readiness.wait_for("vm files");
    let systemd = Notify::from_env();
    tasks.vital("watchdog", given.watchdog.clone().run(systemd.clone(), tasks.stopping()));
    let begun = start(given, doors, hangups, readiness.clone(), &tasks);

    let stop = tasks.stopping();
    // A host that is told to end before it has begun was never ready.
    if let Some(Ok(())) = stop.run_until_cancelled(begun).await {
        readiness.done("vm files");
        info!(%room, socket = %path.display(), admin = %admin_address, "ready");
        systemd.ready();
        out::text(&format!("socket {}\nadmin http://{admin_address}\nready\n", path.display()))?;
    }
    stop.cancelled().await;
    end(&tasks, &path, shows).await
}

/// Starts the parts of a host. What is returned says when every VM that was there counts.
fn start(
    given: Given,
    doors: Doors,
    hangups: Hangups,
    readiness: Readiness,
    tasks: &Tasks,
) -> oneshot::Receiver<()> {
    let (watchdog, log_level) = (given.watchdog.clone(), given.log_level.clone());
    let parts = assemble(given, tasks);
    let (stop, counts) = (tasks.stopping(), Counts::default());
    let registry = Arc::new(registry(&parts, &watchdog, &counts));
    let change_level = CHANGE_LEVEL.to_owned();
    let admin = Admin { readiness, registry, log_level, watchdog: watchdog.clone(), change_level };
    let limits = Limits::small(counts.clone());
    tasks.vital("admin", serve_http(doors.admin, admin::router(admin), limits, stop.clone()));
    let (router, limits) = (http::router(parts.door), socket::limits(counts));
    if let Some(view) = doors.view {
        let shown = view::router(router.clone());
        tasks.vital("view socket", serve_http(view, shown, view::limits(&limits), stop.clone()));
    }
    tasks.vital("socket", serve_http(doors.socket, router, limits, stop.clone()));
    tasks.vital("hang-ups", pass_on(hangups, parts.inbox.reloads.clone(), stop));
    let (begin, begun) = oneshot::channel();
    tasks.vital("steward", parts.steward.run(parts.inbox, begin));
    begun
}

/// Has host.toml read again after each SIGHUP.
async fn pass_on(
    mut hangups: Hangups,
    reloads: Arc<tokio::sync::Notify>,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    while stop.run_until_cancelled(hangups.next()).await.is_some() {
        reloads.notify_one();
    }
    Ok(())
}

/// Takes leave of everything, and removes the sockets that this host listens at.
async fn end(tasks: &Tasks, socket: &Path, shows: bool) -> Result<(), Failure> {
    let drained = program::drain(tasks, GRACE).await;
    let _ = std::fs::remove_file(socket);
    if shows {
        view::remove(socket);
    }
    Ok(drained?)
}

/// What was kept over the restart, and where what is to be kept goes.
async fn open(
    config: &HostConfig,
    config_path: &Path,
    clock: Clock,
) -> Result<(MachineDisk, Recalled), Failure> {
    let state_dir = config.state_dir.clone();
    let (vms_dir, config_path, now) = (config.vms_dir.clone(), config_path.to_owned(), clock.now());
    let opening = apart(move || MachineDisk::open(&state_dir, vms_dir, config_path, now));
    let opened = timeout(OPENED_WITHIN, opening).await.unwrap_or_else(|_| {
        let why = format!("the disk does not answer within {} s", OPENED_WITHIN.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    });
    opened.and_then(|opened| opened).map_err(|error| {
        let state_dir = config.state_dir.display();
        Failure::CannotCreate(format!("cannot use the state_dir {state_dir}: {error}"))
    })
}

/// VMs are reached by QEMU's monitor.
fn ways(clock: Clock) -> Ways {
    Box::new(move |name, known, findings| {
        let qemu = Qemu { qmp: known.monitor.clone(), vcpu_removal: known.vcpu_removal };
        Reach::new(name, qemu, findings, clock)
    })
}

fn registry(parts: &Parts, watchdog: &Watchdog, counts: &Counts) -> Registry {
    let mut registry = Registry::default();
    parts.agent.metrics().register(&mut registry);
    parts.books.register(&mut registry);
    parts.metrics.register(&mut registry);
    watchdog.register(&mut registry);
    counts.register(registry.sub_registry_with_prefix("windlass_host"));
    registry
}
