//! Puts the parts of the plugin together, runs them, and ends them in order.

use crate::args::Args;
use crate::plugin::Plugin;
use crate::source::{Source, Unreadable};
use crate::{dump, metrics};
use clap::Parser;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use windlass_kit::admin::{self, Admin, OwnerSocket, Readiness};
use windlass_kit::blocking::{BlockingTask, run_blocking};
use windlass_kit::clock::Clock;
use windlass_kit::dump_state::DumpListener;
use windlass_kit::notify::Notify;
use windlass_kit::program::{self, Failure, listen};
use windlass_kit::server::{Counts, Limits, serve};
use windlass_kit::signal::Hangups;
use windlass_kit::tasks::Tasks;
use windlass_kit::telemetry::{self, LogLevel};
use windlass_kit::watchdog::{self, Pulse, Watchdog};
use windlass_plugin::Endpoint;
use windlass_plugin_config::config::PluginConfig;
use windlass_plugin_config::lists::Lists;
use windlass_protocol::timing::CONNECTION_KEPT;

/// What everything together may take to end.
const GRACE: Duration = Duration::from_secs(6);

/// Connections of agents at a time: the VMs of a host, of which it has at most 1,000, may all ask at once.
/// Beyond it the connection that idles longest is closed for a new one, so more agents than this are
/// answered, too. It needs more descriptors than the usual 1,024, which the start raises.
const CONNECTIONS: usize = 1_100;

/// Parses the command line, runs until told to end, and gives the exit code.
pub fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => program::end("windlass-plugin", start(&args)),
        Err(error) => {
            // Nothing is left to tell to whom, if the terminal is gone.
            let _ = error.print();
            if error.use_stderr() {
                Failure::Usage(String::new()).code()
            } else {
                ExitCode::SUCCESS
            }
        }
    }
}

fn start(args: &Args) -> Result<(), Failure> {
    let source = args.source()?;
    let log_level = telemetry::init(args.log_format, &args.log)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    program::block_on_one_thread(run(source, args.admin_socket.as_deref(), log_level))
}

async fn run(
    source: Source,
    admin_socket: Option<&Path>,
    log_level: LogLevel,
) -> Result<(), Failure> {
    let (clock, tasks) = (Clock::system(), Tasks::default());
    let hangups = Hangups::and_stop_on_signal(&tasks)?;
    let (config, lists) = source.read()?;
    let (admin_listener, admin_at) = listen("admin", config.admin).await?;
    let admin_socket = OwnerSocket::listen(admin_socket).await?;
    let (permits, permits_at) = listen("permits", config.listen).await?;
    let mut said = format!("permits http://{permits_at}\n");
    let dump = DumpListener::listen(config.dump_state).await?;

    let (plugin, nodes) = (Plugin::new(config, &lists, clock), lists.nodes.len());
    drop(lists);
    let (counts, stop) = (Counts::default(), tasks.stopping());
    if let Some(dump) = dump {
        let of = plugin.clone();
        let gather = move |ends| dump::dump(&of, ends);
        said.push_str(&dump.serve(counts.clone(), stop.clone(), gather));
    }
    let watchdog = Watchdog::default();
    let registry = Arc::new(metrics::registry(&plugin, &counts, &watchdog));
    let (readiness, pulse) = (Readiness::default(), watchdog.watch("lists"));
    let change_level = OwnerSocket::change_level(admin_socket.as_ref());
    let admin = Admin { readiness, registry, log_level, watchdog: watchdog.clone(), change_level };
    admin::start(admin, admin_listener, admin_socket, &Limits::small(counts.clone()), &tasks);
    let endpoint = Endpoint(plugin.clone());
    tasks.vital("permits", serve(permits, endpoint, limits(counts), stop.clone()));
    tasks.vital("lists", reloads(plugin, source, hangups, pulse, stop.clone()));
    let systemd = Notify::from_env();
    tasks.vital("watchdog", watchdog.run(systemd.clone(), stop.clone()));
    info!(permits = %permits_at, admin = %admin_at, nodes, "ready");
    systemd.ready();
    program::say(&format!("{said}admin http://{admin_at}\nready\n"))?;

    stop.cancelled().await;
    program::drain(&tasks, GRACE).await
}

/// What the listener for permits puts up with.
fn limits(counts: Counts) -> Limits {
    Limits {
        connections: CONNECTIONS,
        // Agents keep their connections between requests.
        head_time: CONNECTION_KEPT,
        connection_time: Duration::from_secs(600),
        ..Limits::small(counts)
    }
}

/// Has the lists read again after each SIGHUP; the last valid ones stay in force meanwhile.
async fn reloads(
    plugin: Plugin,
    source: Source,
    mut hangups: Hangups,
    pulse: Pulse,
    stop: CancellationToken,
) -> Result<(), Infallible> {
    let mut reading = BlockingTask::default();
    loop {
        pulse.turn("SIGHUP, or the lists that are read after it");
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            read = reading.done() => reloaded(&plugin, read),
            () = hangups.next(), if reading.is_free() => {
                let source = source.clone();
                reading.start(|| Box::pin(run_blocking(move || source.read())));
            }
            () = tokio::time::sleep(watchdog::TURN) => {}
        }
    }
}

fn reloaded(plugin: &Plugin, read: io::Result<Result<(PluginConfig, Lists), Unreadable>>) {
    match read {
        Ok(read) => plugin.reload(read.map_err(|unreadable| unreadable.report)),
        Err(error) => error!(%error, "cannot be reloaded; the last valid lists stay in force"),
    }
}
