//! Puts the parts of the plugin together, runs them, and ends them in order.

use crate::args::Args;
use crate::plugin::Plugin;
use crate::served::{Served, limits};
use crate::source::{Read, Source, given_back};
use crate::{cluster, dump, metrics};
use clap::Parser;
use std::convert::Infallible;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use windlass_kit::admin::{self, Admin, OwnerSocket, Readiness};
use windlass_kit::blocking::BlockingTask;
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

/// What everything together may take to end.
const GRACE: Duration = Duration::from_secs(6);

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
    program::block_on_one_thread(run(source, args, log_level))
}

async fn run(source: Source, args: &Args, log_level: LogLevel) -> Result<(), Failure> {
    let (clock, tasks) = (Clock::system(), Tasks::default());
    let hangups = Hangups::and_stop_on_signal(&tasks)?;
    let read = source.clone().read_apart().await;
    let (config, lists) = read.map_err(|error| Failure::Failed(error.to_string()))??;
    let (admin_listener, admin_at) = listen("admin", config.admin).await?;
    let admin_socket = OwnerSocket::listen(args.admin_socket.as_deref()).await?;
    let mut said = String::new();
    let dump = DumpListener::listen(config.dump_state).await?;

    let (counts, stop) = (Counts::default(), tasks.stopping());
    let (watchdog, readiness) = (Watchdog::default(), Readiness::default());
    let mut registry = metrics::registry(&counts, &watchdog);
    let served = Served {
        counts: counts.clone(),
        tasks: &tasks,
        watchdog: &watchdog,
        readiness: &readiness,
        registry: &mut registry,
        dump,
        said: &mut said,
        pod: args.pod.as_deref(),
    };
    match config.kubernetes.clone() {
        Some(of) => cluster::start(&config, &of, clock, hangups, served).await?,
        None => {
            let (permits, permits_at) = listen("permits", config.listen).await?;
            served.said.push_str(&format!("permits http://{permits_at}\n"));
            let plugin = Plugin::new(config, &lists, clock);
            given_back(lists).await;
            serve_lists(plugin, permits, source, hangups, served);
        }
    }
    let (registry, watchdog_too) = (Arc::new(registry), watchdog.clone());
    let change_level = OwnerSocket::change_level(admin_socket.as_ref());
    let admin = Admin { readiness, registry, log_level, watchdog: watchdog_too, change_level };
    admin::start(admin, admin_listener, admin_socket, &Limits::small(counts), &tasks);
    let systemd = Notify::from_env();
    tasks.vital("watchdog", watchdog.run(systemd.clone(), stop.clone()));
    info!(admin = %admin_at, "ready");
    systemd.ready();
    program::say(&format!("{said}admin http://{admin_at}\nready\n"))?;

    stop.cancelled().await;
    program::drain(&tasks, GRACE).await
}

/// The plugin of lists: its permits, its state, and what SIGHUP does.
fn serve_lists(
    plugin: Plugin,
    permits: TcpListener,
    source: Source,
    hangups: Hangups,
    served: Served<'_>,
) {
    let Served { counts, tasks, watchdog, registry, dump, said, .. } = served;
    let stop = tasks.stopping();
    metrics::register(&plugin, registry);
    if let Some(dump) = dump {
        let of = plugin.clone();
        let gather = move |ends| dump::dump(&of, ends);
        said.push_str(&dump.serve(counts.clone(), stop.clone(), gather));
    }
    let (stops, pulse) = (plugin.stops().clone(), watchdog.watch("stops"));
    tasks.vital("stops", stops.run(pulse, stop.clone()));
    let pulse = watchdog.watch("lists");
    tasks.vital("permits", serve(permits, Endpoint(plugin.clone()), limits(counts), stop.clone()));
    tasks.vital("lists", reloads(plugin, source, hangups, pulse, stop));
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
            read = reading.done() => reloaded(&plugin, read).await,
            () = hangups.next(), if reading.is_free() => {
                let source = source.clone();
                reading.start(|| Box::pin(source.read_apart()));
            }
            () = tokio::time::sleep(watchdog::TURN) => {}
        }
    }
}

async fn reloaded(plugin: &Plugin, read: io::Result<Read>) {
    match read {
        Ok(Ok((config, lists))) => {
            plugin.reload(Ok((config, &lists)));
            given_back(lists).await;
        }
        Ok(Err(unreadable)) => plugin.reload(Err(unreadable.report)),
        Err(error) => error!(%error, "cannot be reloaded; the last valid lists stay in force"),
    }
}
