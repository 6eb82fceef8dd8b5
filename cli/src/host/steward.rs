//! The owner of everything that is written down: VM files, state, history.
//!
//! One task. It looks at the VM files, tells the agent which VMs there are, obeys the orders
//! that come over the socket, and keeps what must survive a restart. It decides no size. What
//! it cannot write it says, and goes on: a full disk stops no VM from following its load.

mod orders;
mod round;

use super::config::HostConfig;
use super::desk::Order;
use super::folder::{self, Folder, Step};
use super::history::History;
use super::ledger::{HostLedger, record};
use super::metrics::Metrics;
use super::reach::{Findings, Reach};
use super::room::Machine;
use super::state::{Hold, Kept, Known, State};
use crate::problem::{Problem, Report};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_agent::{Agent, Standing};
use windlass_drivers_qemu::Qemu;
use windlass_kit::clock::Clock;
use windlass_kit::signal::Hangups;
use windlass_plugin::Shared;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Moment, Resources, VmName};

/// A changed file is in force after two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the steward works with.
pub(super) struct Steward {
    pub(super) clock: Clock,
    pub(super) agent: Agent<Reach>,
    pub(super) books: Shared,
    pub(super) ledger: Arc<HostLedger>,
    pub(super) findings: Findings,
    pub(super) machine: Machine,
    pub(super) config_path: PathBuf,
    pub(super) config: HostConfig,
    pub(super) folder: Folder,
    pub(super) state: State,
    pub(super) history: History,
    /// What is wrong besides files, by subject.
    pub(super) reports: BTreeMap<&'static str, Report>,
    pub(super) metrics: Metrics,
    /// Looks so far: some things are not done at each.
    pub(super) looks: u64,
}

// === impl Steward ===

impl Steward {
    /// Counts what was there before the restart and manages what files say, before anything
    /// can be granted to anybody.
    pub(super) fn begin(&mut self) {
        self.agent.freeze(self.state.kept().frozen.is_some());
        let look = tokio::task::block_in_place(|| folder::look(&self.config.vms_dir));
        let steps = self.folder.observe(look, true);
        for (name, known) in self.state.kept().vms.clone() {
            let filed = self.folder.get(&name).is_some();
            let hold = match known.hold {
                Hold::Managed if filed => continue,
                Hold::Released if filed => Hold::Released,
                Hold::Managed | Hold::Released | Hold::Removed => Hold::Removed,
            };
            // A file that came back while nobody looked is taken up below.
            if !(filed && hold == Hold::Removed) {
                self.count(&name, &Known { hold, ..known });
            }
        }
        for step in steps {
            self.follow(step);
        }
        self.warn_of_files(&[]);
        self.round();
    }

    /// Works until `stop`.
    pub(super) async fn run(
        mut self,
        mut orders: mpsc::Receiver<Order>,
        mut hangups: Hangups,
        stop: CancellationToken,
    ) -> Result<(), Infallible> {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    self.round();
                    return Ok(());
                }
                Some(order) = orders.recv() => self.obey(order),
                () = hangups.next() => self.reload(),
                _ = looks.tick() => self.look(),
            }
        }
    }

    /// Carries out what a look at the VM files found.
    fn follow(&mut self, step: Step) {
        match step {
            Step::Manage(file) => {
                let name = &file.info.name.name;
                let released = self.hold(name) == Some(Hold::Released);
                info!(vm = name, released, "vm file in force");
                // A person let go of it, and takes it back with `resume`.
                if !released {
                    self.manage(*file);
                }
            }
            Step::Forget(name) => {
                info!(vm = name, "vm file is gone");
                // Without a runner it was never there.
                if self.agent.forget(&VmName::on_host(name.as_str())).is_ok() {
                    self.set_hold(&name, Hold::Removed);
                }
                self.state.change(|kept| kept.pause(&name, None));
            }
        }
    }

    /// Has the agent manage a VM as its file says, or paused as a person said.
    fn manage(&mut self, mut file: VmFile) {
        let name = file.info.name.name.clone();
        let paused = self.state.kept().pauses.get(&name).copied();
        let known = Known {
            hold: Hold::Managed,
            monitor: file.qmp.clone(),
            vcpu_removal: file.vcpu_removal,
            size: self.known(&name).and_then(|known| known.size),
            max: file.info.bounds.max,
            record: record(&file.info),
        };
        let before = self.known(&name);
        // What was written down may be two seconds old: the largest that it may have been given.
        let ceiling = before.map_or(known.max, |before| {
            known.max.max(before.max).max(before.size.unwrap_or_default())
        });
        if before.is_none_or(|before| before.monitor != known.monitor) {
            self.findings.forget(&name);
        }
        self.presume(&name, &known, ceiling);
        let reach = self.reach(&name, &known);
        self.state.change(|kept| drop(kept.vms.insert(name, known)));
        file.info.paused_until = file.info.paused_until.max(paused);
        self.agent.manage(file, reach);
    }

    /// Has the agent count a VM that nobody manages.
    fn count(&mut self, name: &str, known: &Known) {
        let standing = match known.hold {
            Hold::Released => Standing::Released,
            Hold::Managed | Hold::Removed => Standing::Removed,
        };
        let last = known.size.unwrap_or(known.max);
        self.presume(name, known, last);
        let reach = self.reach(name, known);
        self.state.change(|kept| drop(kept.vms.insert(name.to_owned(), known.clone())));
        self.agent.count(VmName::on_host(name), reach, last, standing);
    }

    /// A VM whose monitor answers is there, and counts from this moment on.
    fn presume(&self, name: &str, known: &Known, ceiling: Resources) {
        if answers(known) {
            self.ledger.presume(&VmName::on_host(name), known.record, ceiling);
        }
    }

    fn reach(&self, name: &str, known: &Known) -> Reach {
        let qemu = Qemu { qmp: known.monitor.clone(), vcpu_removal: known.vcpu_removal };
        Reach::new(name, qemu, &self.findings, self.clock)
    }

    fn known(&self, name: &str) -> Option<&Known> {
        self.state.kept().vms.get(name)
    }

    fn hold(&self, name: &str) -> Option<Hold> {
        self.known(name).map(|known| known.hold)
    }

    fn set_hold(&mut self, name: &str, hold: Hold) {
        self.state.change(|kept| {
            if let Some(known) = kept.vms.get_mut(name) {
                known.hold = hold;
            }
        });
    }

    /// Writes what changed. What cannot be written is said and tried again.
    fn save(&mut self) -> Result<(), String> {
        match tokio::task::block_in_place(|| self.state.save()) {
            Ok(()) => {
                self.settle("state", None);
                Ok(())
            }
            Err(error) => {
                let problem = Problem::without_value("", format!("cannot be written: {error}"));
                self.settle("state", Some((problem, "it will not survive a restart")));
                Err(error.to_string())
            }
        }
    }

    /// Keeps or ends a report; a new one is logged once.
    fn settle(&mut self, subject: &'static str, problem: Option<(Problem, &str)>) {
        let Some((problem, meanwhile)) = problem else {
            if self.reports.remove(subject).is_some() {
                info!(subject, "as it should be again");
            }
            return;
        };
        let report = Report {
            subject: subject.to_owned(),
            problems: vec![problem],
            meanwhile: meanwhile.to_owned(),
        };
        if self.reports.get(subject) != Some(&report) {
            warn!(%report, "needs a look");
            self.reports.insert(subject, report);
        }
    }
}

/// Whether somebody serves this monitor. A connection is all that is asked for.
fn answers(known: &Known) -> bool {
    std::os::unix::net::UnixStream::connect(&known.monitor).is_ok()
}

/// The names of all VMs that are known, for a person who mistyped one.
fn names(kept: &Kept) -> String {
    if kept.vms.is_empty() {
        return "none is known".to_owned();
    }
    let names: Vec<&str> = kept.vms.keys().map(String::as_str).take(20).collect();
    format!("there are {}", names.join(", "))
}
