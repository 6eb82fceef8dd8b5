//! Keeps the agent to what VM files say, and writes down what must survive a restart.
//!
//! One task. It decides no size. What it cannot write it says, and goes on.

use crate::args::Args;
use crate::config::AgentConfig;
use crate::metrics::Files;
use crate::state::State;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use windlass_agent::Agent;
use windlass_agent::folder::{self, Folder, Step};
use windlass_drivers_qemu::Qemu;
use windlass_kit::signal::Hangups;
use windlass_protocol::VmName;
use windlass_protocol::vm_file::VmFile;

/// A changed file is in force after two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the keeper works with.
pub(crate) struct Keeper {
    pub(crate) agent: Agent<Qemu>,
    pub(crate) args: Args,
    pub(crate) config: AgentConfig,
    pub(crate) folder: Folder,
    pub(crate) state: State,
    pub(crate) files: Files,
    /// Whether it is known which VMs are to be managed: the folder was read at least once.
    pub(crate) listed: Arc<AtomicBool>,
    /// Whether the ports could not be written, and that was said.
    pub(crate) unwritten: bool,
}

// === impl Keeper ===

impl Keeper {
    /// Manages what files say, before anybody is told that the agent is ready.
    pub(crate) fn begin(&mut self) {
        self.look();
    }

    /// Works until `stop`.
    pub(crate) async fn run(
        mut self,
        mut hangups: Hangups,
        stop: CancellationToken,
    ) -> Result<(), Infallible> {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = hangups.next() => self.reload(),
                _ = looks.tick() => self.look(),
            }
        }
    }

    /// Looks at the VM files; what the first look finds counts at once.
    fn look(&mut self) {
        let before = self.folder.reports();
        let look = tokio::task::block_in_place(|| folder::look(&self.config.vms_dir));
        let (is_read, is_first) = (look.is_ok(), !self.listed.load(Ordering::Relaxed));
        for step in self.folder.observe(look, is_first) {
            self.follow(step);
        }
        if is_read {
            self.listed.store(true, Ordering::Relaxed);
        }
        let reports = self.folder.reports();
        for report in reports.iter().filter(|report| !before.contains(report)) {
            warn!(%report, "vm file is not as it should be");
        }
        self.keep_ports();
        let (valid, tracked) = (self.folder.valid().count(), self.agent.standings().len());
        self.files.observe(valid, reports.len() + usize::from(self.unwritten), tracked);
    }

    fn follow(&self, step: Step) {
        match step {
            Step::Manage(file) => {
                info!(vm = file.info.name.name, "vm file in force");
                let VmFile { qmp, vcpu_removal, .. } = file.as_ref();
                let qemu = Qemu { qmp: qmp.clone(), vcpu_removal: *vcpu_removal };
                self.agent.manage(*file, qemu);
            }
            Step::Forget(name) => {
                info!(vm = name, "vm file is gone; the vm keeps its size");
                // One that nobody manages is as it should be.
                let _ = self.agent.forget(&VmName::on_host(name));
            }
        }
    }

    fn keep_ports(&mut self) {
        let (ports, folder) = (self.agent.ports(), &self.folder);
        let known = |vm: &VmName| folder.get(&vm.name).is_some();
        let state = &mut self.state;
        match tokio::task::block_in_place(|| state.keep(ports, known)) {
            Ok(()) => self.unwritten = false,
            Err(error) if !self.unwritten => {
                warn!(%error, "ports.json cannot be written; it will not survive a restart");
                self.unwritten = true;
            }
            Err(_) => {}
        }
    }

    /// Reads the configuration again, after SIGHUP: all of it takes effect at the next start, so
    /// what can be done is to say whether that will go well.
    fn reload(&mut self) {
        match tokio::task::block_in_place(|| self.args.read()) {
            Ok(config) => {
                let waits = config.needs_restart(&self.config).join(", ");
                if waits.is_empty() {
                    info!("the configuration is valid and has not changed");
                } else {
                    warn!(keys = waits, "changed, and takes effect at the next start");
                }
            }
            Err(failure) => {
                let why = failure.to_string().replace('\n', "; ");
                error!(why, "the configuration is not valid; the one of the start is in force");
            }
        }
        self.look();
    }
}
