//! Builds the parts and runs them until a signal ends the program.

use crate::config::Config;
use crate::hotplug;
use crate::http;
use crate::kernel_events;
use crate::log;
use crate::memory_cotenant::MemoryCotenant;
use crate::runner;
use crate::shared::Shared;
use crate::sysfs_worker::SysfsWorker;
use crate::tree::Tree;
use anyhow::Context;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use windlass_informant_core::{Informant, Settings};

/// Before the workload: an agent that is not answered takes the guest for lost just when it
/// is busiest.
const NICE: i32 = -10;

/// Runs the program.
///
/// # Errors
/// It cannot begin to serve.
pub fn run(config: &Config) -> anyhow::Result<()> {
    run_beside(config, ())
}

/// Runs the program where something else has a say.
///
/// # Errors
/// It cannot begin to serve.
pub fn run_beside<B: MemoryCotenant>(config: &Config, cotenant: B) -> anyhow::Result<()> {
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
