//! Runs the agent of a node, from where things are to the parts, and their end in order.

use crate::source::{Source, start};
use crate::telling;
use kube::Client;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;
use windlass_agent::{Agent, Config, NullLedger, Remote};
use windlass_agent_core::declared::Terms;
use windlass_kit::admin::{self, Admin, OwnerSocket, Readiness};
use windlass_kit::clock::Clock;
use windlass_kit::dump_state::DumpListener;
use windlass_kit::notify::Notify;
use windlass_kit::program::{self, Failure};
use windlass_kit::server::Limits;
use windlass_kit::signal::Hangups;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::LogLevel;
use windlass_kit::watchdog::Watchdog;
use windlass_kit_kubernetes::Watches;

/// What everything together may take to end; the agent takes leave of its guests meanwhile.
const GRACE: Duration = Duration::from_secs(8);

/// The agent of a node of a cluster.
pub struct NodeAgent {
    /// How the API server is reached.
    pub client: Client,
    /// The node.
    pub node: String,
    /// What is the same for all its VMs.
    pub terms: Terms,
    /// The kubelet's folder of pods, where VMs of QEMU in pods are scaled.
    pub pods_dir: Option<PathBuf>,
    /// What the agent is told.
    pub agent: Config,
    /// Whom it asks for permits.
    pub permits: Arc<Remote>,
    /// Where health and metrics are served.
    pub admin: SocketAddr,
    /// Where the log level can be changed besides.
    pub admin_socket: Option<PathBuf>,
    /// Where the state is shown, and how long gathering it may take.
    pub dump_state: Option<(SocketAddr, Duration)>,
    /// Gathers the state, for a person who looks for a fault.
    pub gather: Gather,
    /// What time it is.
    pub clock: Clock,
    /// What is logged.
    pub log_level: LogLevel,
    /// What the program adds.
    pub start: Start,
}

/// Gathers the state of an agent that runs, or is about to end.
pub type Gather = Box<dyn Fn(&Agent, bool) -> Value + Send + Sync>;

/// Exports what a program counts, and starts what it has besides, among these tasks.
pub type Start = Box<dyn FnOnce(&Agent, &Watchdog, &mut Registry, &Tasks) + Send>;

/// Runs the agent of a node until it is told to end.
///
/// # Errors
/// What it needs cannot be had, or a part of it failed.
pub async fn run(node: NodeAgent) -> Result<(), Failure> {
    let tasks = Tasks::default();
    // A configuration is read at the start alone, and SIGHUP ends nothing.
    let _hangups = Hangups::and_stop_on_signal(&tasks)?;
    let (admin, admin_at) = program::listen("admin", node.admin).await?;
    let admin_socket = OwnerSocket::listen(node.admin_socket.as_deref()).await?;
    let dump = DumpListener::listen(node.dump_state).await?;
    let (systemd, watchdog) = (Notify::from_env(), Watchdog::default());
    tasks.vital("watchdog", watchdog.clone().run(systemd.clone(), tasks.stopping()));
    let config = Config { watchdog: watchdog.clone(), ..node.agent };
    let permits = Arc::clone(&node.permits);
    let agent = Agent::new(config, permits, Arc::new(NullLedger), &tasks, node.clock);
    let (mut registry, watches) = (Registry::default(), Watches::default());
    agent.metrics().register(&mut registry);
    watchdog.register(&mut registry);
    watches.register(registry.sub_registry_with_prefix("windlass_agent"));
    (node.start)(&agent, &watchdog, &mut registry, &tasks);
    let readiness = Readiness::default();
    let source = Source {
        client: node.client,
        node: node.node,
        terms: node.terms,
        pods_dir: node.pods_dir,
        agent: agent.clone(),
        watches,
        readiness: readiness.clone(),
        watchdog: watchdog.clone(),
    };
    start(source, &tasks);
    let pulse = watchdog.watch("what the plugin is told");
    let telling = telling::run(agent.clone(), node.permits, pulse, tasks.stopping());
    tasks.vital("telling", telling);
    let counts = agent.metrics().refusals();
    let limits = Limits::small(counts.clone());
    let change_level = OwnerSocket::change_level(admin_socket.as_ref());
    let registry = Arc::new(registry);
    let log_level = node.log_level;
    let shown = Admin { readiness, registry, log_level, watchdog, change_level };
    admin::start(shown, admin, admin_socket, &limits, &tasks);
    let gather = node.gather;
    let said = dump
        .map(|dump| dump.serve(counts, tasks.stopping(), move |stopped| gather(&agent, stopped)));
    info!(admin = %admin_at, "ready");
    systemd.ready();
    program::say(&format!("{}admin http://{admin_at}\nready\n", said.unwrap_or_default()))?;
    tasks.stopping().cancelled().await;
    program::drain(&tasks, GRACE).await
}
