//! Keeps the agent to what VM files say, and writes down what must survive a restart.
//!
//! One task. It decides no size, and waits for no disk: those work apart. What it cannot write it
//! says, and goes on.

use crate::args::Args;
use crate::config::AgentConfig;
use crate::metrics::Files;
use crate::state::{Ports, State};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use windlass_agent::Agent;
use windlass_kit::blocking::{BlockingTask, LATE, run_blocking};
use windlass_kit::problem::Problem;
use windlass_kit::program::Failure;
use windlass_kit::signal::Hangups;
use windlass_kit::watchdog::Pulse;
use windlass_protocol::VmName;
use windlass_vm_files::folder::{self, Folder, Look, Step};
use windlass_vm_files::{attach, vm};

/// A changed file is in force after two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the keeper works with.
pub(crate) struct Keeper {
    pub(crate) agent: Agent,
    pub(crate) args: Arc<Args>,
    pub(crate) config: AgentConfig,
    pub(crate) folder: Folder,
    pub(crate) state: State,
    pub(crate) files: Files,
    /// Whether it is known which VMs are to be managed: the folder was read at least once.
    pub(crate) listed: Arc<AtomicBool>,
    /// Whether the ports could not be written, and that was said.
    pub(crate) unwritten: bool,
    pub(crate) blocking: BlockingTasks,
}

/// What disks are doing.
#[derive(Default)]
pub(crate) struct BlockingTasks {
    look: BlockingTask<Look>,
    ports: BlockingTask<(Ports, io::Result<()>)>,
    config: BlockingTask<io::Result<Result<AgentConfig, Failure>>>,
}

// === impl Keeper ===

impl Keeper {
    /// Manages what files say, before anybody is told that the agent is ready. A disk that does not
    /// answer is as one that cannot be read.
    pub(crate) async fn begin(&mut self) {
        self.look();
        let look = timeout(LATE, self.blocking.look.done()).await;
        self.looked(look.unwrap_or_else(|_| Err(silent())));
    }

    /// Works until `stop`.
    pub(crate) async fn run(
        mut self,
        mut hangups: Hangups,
        pulse: Pulse,
        stop: CancellationToken,
    ) -> Result<(), Infallible> {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pulse.turn("files and disks");
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                look = self.blocking.look.done() => self.looked(look),
                (ports, kept) = self.blocking.ports.done() => self.kept_ports(ports, kept),
                config = self.blocking.config.done() => self.reloaded(config),
                _ = looks.tick() => {
                    if self.blocking.look.is_late() {
                        self.looked(Err(silent()));
                    }
                    self.look();
                }
                () = hangups.next(), if self.blocking.config.is_free() => self.reload(),
            }
        }
    }

    /// Has the VM files looked at, unless a look is under way.
    fn look(&mut self) {
        let folder = self.config.vms_dir.clone();
        self.blocking.look.start(|| {
            Box::pin(async move {
                let look = run_blocking(move || folder::look(&folder)).await;
                look.unwrap_or_else(|error| Err(unread(&error)))
            })
        });
    }

    /// Follows a look at the VM files; what the first look finds counts at once.
    fn looked(&mut self, look: Look) {
        let before = self.folder.reports();
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
        let (valid, tracked) = (self.folder.valid().count(), self.agent.lifecycles().len());
        self.files.observe(valid, reports.len() + usize::from(self.unwritten), tracked);
    }

    fn follow(&self, step: Step) {
        match step {
            Step::Manage(file) => {
                info!(vm = file.info.name.name, "vm file in force");
                self.agent.declare(vm(&file), attach(&file));
            }
            Step::Forget(name) => {
                info!(vm = name, "vm file is gone; the vm keeps its size");
                // One that nobody manages is as it should be.
                let _ = self.agent.forget(&VmName::on_host(name));
            }
        }
    }

    /// Has the ports written, if they changed and no writing is under way.
    fn keep_ports(&mut self) {
        let (ports, folder) = (self.agent.ports(), &self.folder);
        let Some(due) = self.state.due(ports, |vm| folder.get(&vm.name).is_some()) else { return };
        let file = self.state.file();
        self.blocking.ports.start(|| {
            Box::pin(async move {
                let ports = due.clone();
                let kept = run_blocking(move || file.write(&ports)).await;
                (due, kept.and_then(|kept| kept))
            })
        });
    }

    fn kept_ports(&mut self, ports: Ports, kept: io::Result<()>) {
        match kept {
            Ok(()) => {
                self.state.wrote(ports);
                self.unwritten = false;
            }
            Err(error) if !self.unwritten => {
                warn!(%error, "ports.json cannot be written; it will not survive a restart");
                self.unwritten = true;
            }
            Err(_) => {}
        }
    }

    /// Has the configuration read again.
    fn reload(&mut self) {
        let args = self.args.clone();
        self.blocking.config.start(|| Box::pin(run_blocking(move || args.read())));
        self.look();
    }

    /// All of the configuration takes effect at the next start, so what can be done is to say
    /// whether that will go well.
    fn reloaded(&self, read: io::Result<Result<AgentConfig, Failure>>) {
        let read = read.map_err(|error| Failure::Failed(error.to_string()));
        match read.and_then(|read| read) {
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
    }
}

fn silent() -> Problem {
    Problem::without_value("", "cannot be read: the disk does not answer")
}

fn unread(error: &io::Error) -> Problem {
    Problem::without_value("", format!("cannot be read: {error}"))
}
