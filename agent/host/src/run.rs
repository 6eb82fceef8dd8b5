//! Runs a host on this machine: from where things are to the parts, and their end in order.

use crate::api::{GROUP, HostFacts};
use crate::basics::Basics;
use crate::checked_attach::CheckedAttach;
use crate::composition::Composition;
use crate::controller::Ways;
use crate::disk::{MachineDisk, Recalled};
use crate::parts::{Parts, Setup};
use crate::{http, socket, view_socket};
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify as Reloads, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::info;
use windlass_agent::Agent;
use windlass_drivers_qemu::Qemu;
use windlass_kit::admin::{self, Admin, OwnerSocket, Readiness};
use windlass_kit::blocking::run_blocking;
use windlass_kit::clock::Clock;
use windlass_kit::dump_state::DumpListener;
use windlass_kit::notify::Notify;
use windlass_kit::program::{self, Failure};
use windlass_kit::server::{Counts, Limits, serve};
use windlass_kit::signal::Hangups;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;
use windlass_protocol::CpuLimit;

/// What everything together may take to end; the agent takes leave of its guests meanwhile.
const GRACE: Duration = Duration::from_secs(8);

/// What the disk may take to say what was kept over a restart: nothing is decided without it.
const OPENED_WITHIN: Duration = Duration::from_secs(30);

/// The folder in `state_dir` with the limits that VMs had before Windlass set its own.
const LIMITS: &str = "limits";

/// What readiness waits for.
const VM_FILES: &str = "vm files";

/// What a request to change the log level over TCP is told, where no socket is for that alone.
const CHANGE_LEVEL: &str = "`windlass log-level LEVEL` does it, over the host's socket";

/// A program that runs an agent on this machine.
pub struct Host {
    /// What it says of its agent.
    pub composition: Composition,
    /// The file it was configured by.
    pub config: PathBuf,
    /// What that file says of files and addresses.
    pub basics: Basics,
    /// What else may have its `state_dir`: `another agent`.
    pub rival: &'static str,
    /// Where the log level can be changed besides.
    pub admin_socket: Option<PathBuf>,
    /// What time it is, also for what was composed already.
    pub clock: Clock,
    /// What is logged.
    pub log_level: LogLevel,
    /// Gathers the state, for a person who looks for a fault; needed where the state is shown.
    pub gather: Option<Gather>,
    /// What it adds to the parts.
    pub start: Start,
}

/// Gathers the state of an agent that runs, or is about to end.
pub type Gather = Box<dyn Fn(&Agent, bool) -> Value + Send + Sync>;

/// Exports what a program counts, and starts what it has besides, among these tasks. Says where
/// refusals of the listeners are counted.
pub type Start = Box<dyn FnOnce(&Parts, &mut Registry, &Tasks) -> Result<Counts, Failure> + Send>;

/// Where a host is reached.
struct Listeners {
    socket: UnixListener,
    /// For those who may only look, where it could be had.
    view: Option<UnixListener>,
    admin: TcpListener,
    admin_socket: Option<OwnerSocket>,
    dump: Option<DumpListener>,
}

/// Runs a host until it is told to end.
///
/// # Errors
/// What it needs cannot be had, or a part of it failed.
pub async fn run(host: Host) -> Result<(), Failure> {
    let Host { composition, config, basics, clock, log_level, gather, start, .. } = host;
    let tasks = Tasks::default();
    let hangups = Hangups::and_stop_on_signal(&tasks)?;
    // First what only one process can have: a second host ends here and has touched nothing.
    let socket = socket::listen(&basics.socket, GROUP).await?;
    let (admin, admin_at) = program::listen("admin", basics.admin).await?;
    let admin_socket = OwnerSocket::listen(host.admin_socket.as_deref()).await?;
    let dump = DumpListener::listen(basics.dump_state).await?;
    let opening = open(host.rival, &basics, config.clone(), clock);
    let Some(opened) = tasks.stopping().run_until_cancelled(opening).await else {
        return end(&tasks, &basics.socket, false).await;
    };
    let (disk, recalled) = opened?;
    let view = view_socket::listen(&basics.socket).await;
    let shows = view.is_some();
    let listeners = Listeners { socket, view, admin, admin_socket, dump };

    let watchdog = Watchdog::default();
    let ways = ways(composition.agent.cpu_limit, basics.state_dir.join(LIMITS), clock);
    let setup = Setup {
        facts: HostFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: clock.now(),
            config,
            vms_dir: basics.vms_dir,
            state_dir: basics.state_dir,
            admin: admin_at.to_string(),
            cpu_limit: composition.agent.cpu_limit,
        },
        composition,
        clock,
        disk: Arc::new(disk),
        recalled,
        ways,
        watchdog: watchdog.clone(),
        log_level: log_level.clone(),
    };
    let parts = setup.assemble(&tasks);
    let systemd = Notify::from_env();
    tasks.vital("watchdog", watchdog.clone().run(systemd.clone(), tasks.stopping()));
    let mut registry = Registry::default();
    parts.agent.metrics().register(&mut registry);
    watchdog.register(&mut registry);
    let counts = start(&parts, &mut registry, &tasks)?;
    let readiness = Readiness::default();
    readiness.wait_for(VM_FILES);
    let change_level = match &listeners.admin_socket {
        None => CHANGE_LEVEL.to_owned(),
        socket => OwnerSocket::change_level(socket.as_ref()),
    };
    let registry = Arc::new(registry);
    let admin = Admin { readiness: readiness.clone(), registry, log_level, watchdog, change_level };
    let (said, begun) = listeners.serve(parts, admin, gather, hangups, counts, &tasks);

    let stop = tasks.stopping();
    // A host that is told to end before it has begun was never ready.
    if let Some(Ok(())) = stop.run_until_cancelled(begun).await {
        readiness.done(VM_FILES);
        let socket = basics.socket.display();
        info!(%socket, admin = %admin_at, "reached");
        info!("ready");
        systemd.ready();
        program::say(&format!("socket {socket}\n{said}admin http://{admin_at}\nready\n"))?;
    }
    stop.cancelled().await;
    end(&tasks, &basics.socket, shows).await
}

// === impl Listeners ===

impl Listeners {
    /// Serves at all of them, and has the controller run. Says where the state is shown, and when every
    /// VM that was there counts.
    fn serve(
        self,
        parts: Parts,
        admin: Admin,
        gather: Option<Gather>,
        hangups: Hangups,
        counts: Counts,
        tasks: &Tasks,
    ) -> (String, oneshot::Receiver<()>) {
        let Parts { agent, api, controller, .. } = parts;
        let stop = tasks.stopping();
        let said = self.dump.zip(gather).map(|(listener, gather)| {
            listener.serve(counts.clone(), stop.clone(), move |ends| gather(&agent, ends))
        });
        admin::start(admin, self.admin, self.admin_socket, &Limits::small(counts.clone()), tasks);
        let (router, limits) = (http::router(api), socket::limits(counts));
        if let Some(view) = self.view {
            let shown = view_socket::router(router.clone());
            let limits = view_socket::limits(&limits);
            tasks.vital("view socket", serve(view, shown, limits, stop.clone()));
        }
        tasks.vital("socket", serve(self.socket, router, limits, stop.clone()));
        tasks.vital("hang-ups", pass_on(hangups, controller.reloads.clone(), stop));
        let (begin, begun) = oneshot::channel();
        tasks.vital("host controller", controller.run(begin));
        (said.unwrap_or_default(), begun)
    }
}

/// Has the configuration read again after each SIGHUP.
async fn pass_on(
    mut hangups: Hangups,
    reloads: Arc<Reloads>,
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
        view_socket::remove(socket);
    }
    drained
}

/// What was kept over the restart, and where what is to be kept goes.
async fn open(
    rival: &'static str,
    basics: &Basics,
    config: PathBuf,
    clock: Clock,
) -> Result<(MachineDisk, Recalled), Failure> {
    let (state_dir, vms_dir) = (basics.state_dir.clone(), basics.vms_dir.clone());
    let now = clock.now();
    let opening = run_blocking(move || MachineDisk::open(rival, &state_dir, vms_dir, config, now));
    let opened = timeout(OPENED_WITHIN, opening).await.unwrap_or_else(|_| {
        let why = format!("the disk does not answer within {} s", OPENED_WITHIN.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    });
    opened.and_then(|opened| opened).map_err(|error| {
        let state_dir = basics.state_dir.display();
        Failure::CannotCreate(format!("cannot use the state_dir {state_dir}: {error}"))
    })
}

/// VMs are reached by QEMU's monitor; their CPU is limited as their files say, or else the host.
fn ways(cpu_limit: Option<CpuLimit>, limits: PathBuf, clock: Clock) -> Ways {
    Box::new(move |name, known, findings| {
        let qemu = Qemu {
            qmp: known.monitor.clone(),
            vcpu_removal: known.vcpu_removal,
            cpu_limit: known.cpu_limit.or(cpu_limit),
            limits: Some(limits.clone()),
        };
        CheckedAttach::new(name, qemu, findings, clock)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked_attach::Findings;
    use crate::state::Known;
    use windlass_agent::Lifecycle;
    use windlass_drivers::Attach;
    use windlass_protocol::CpuLimit::{Cgroup, None as Unlimited, Trust};
    use windlass_protocol::Resources;

    #[test]
    fn a_vm_file_says_how_its_cpu_is_limited_before_the_host_does() {
        let (clock, findings) = (Clock::system(), Findings::default());
        for (of_host, of_vm, limited) in [
            (None, None, None),
            (None, Some(Trust), Some(Trust)),
            (Some(Trust), None, Some(Trust)),
            (Some(Trust), Some(Cgroup), Some(Cgroup)),
            (Some(Cgroup), Some(Unlimited), Some(Unlimited)),
        ] {
            let known = Known {
                standing: Lifecycle::Managed,
                monitor: "/run/a.sock".into(),
                vcpu_removal: false,
                cpu_limit: of_vm,
                size: None,
                max: Resources::ZERO,
                record: Default::default(),
            };
            let way = ways(of_host, "/limits".into(), clock)("a", &known, &findings);
            let qemu = Qemu {
                qmp: known.monitor,
                vcpu_removal: false,
                cpu_limit: limited,
                limits: Some("/limits".into()),
            };
            let expected = CheckedAttach::new("a", qemu, &findings, clock);
            assert!(way.is_same_way(&expected), "{of_host:?} {of_vm:?}");
        }
    }
}
