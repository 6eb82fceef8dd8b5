//! Builds the parts and runs them until a signal ends the program.

use crate::config::Config;
use crate::memory_cotenant::MemoryCotenant;
use crate::shared::Shared;
use crate::sysfs_worker::SysfsWorker;
use crate::tree::Tree;
use crate::{hotplug, http, kernel_events, log, runner};
use anyhow::Context;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use windlass_informant_core::{Informant, Settings};

/// Before the workload: an agent that is not answered takes the guest for lost just when it
/// is busiest.
const NICE: i32 = -10;

/// A command line that is not understood (`EX_USAGE`).
const USAGE: u8 = 64;

/// How the program ends, after what came of its command line and then of its run.
pub fn end<E: Display>(outcome: Result<anyhow::Result<()>, E>) -> ExitCode {
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            log::warn(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            log::warn(format_args!("{error}"));
            ExitCode::from(USAGE)
        }
    }
}

/// Prints this in place of a run.
pub fn print(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// Runs the program, beside what else has a say: nothing is `()`.
///
/// # Errors
/// It cannot begin to serve.
pub fn run<B: MemoryCotenant>(config: &Config, cotenant: B) -> anyhow::Result<()> {
    let tree = Tree::new(config.root.as_deref());
    if tree.is_the_machine()
        && let Err(error) = rustix::process::setpriority_process(None, NICE)
    {
        log::warn(format_args!("cannot go before the workload: {error}"));
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(serve(config, tree, cotenant))
}

async fn serve<B: MemoryCotenant>(config: &Config, tree: Tree, cotenant: B) -> anyhow::Result<()> {
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let address = listener.local_addr().context("cannot tell where it listens")?;
    let parked = hotplug::remembered(&tree).unwrap_or_else(|error| {
        log::warn(format_args!("cannot read what was parked: {error}"));
        BTreeSet::new()
    });
    let leased = hotplug::leased(&tree);
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;

    let worker = SysfsWorker::start(tree.clone()).context("cannot start a thread")?;
    let core = Informant::new(Settings {
        versions: config.versions,
        metrics_port: address.port(),
        parked,
        leased,
    });
    let shared = Arc::new(Shared::new(core, tree, cotenant));
    kernel_events::listen(Arc::clone(&shared)).context("cannot start a thread")?;
    B::start(&shared)?;
    log::info(format_args!("serving on {address}"));
    tokio::select! {
        () = runner::run(Arc::clone(&shared), worker, config.sample_every) => {}
        () = http::serve(Arc::clone(&shared), listener) => {}
        _ = terminate.recv() => log::info(format_args!("told to end")),
        _ = interrupt.recv() => log::info(format_args!("told to end")),
    }
    Ok(())
}
