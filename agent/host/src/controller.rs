//! The owner of everything that is written down: VM files, state, history.
//!
//! One task. It looks at the VM files, tells the agent which VMs there are, obeys the orders
//! that come over the socket, and keeps what must survive a restart. It decides no size, and it
//! waits for nothing but the next thing to happen: disks work apart ([`Disk`]), and VMs are
//! reached by the agent alone. What it cannot write it says, and goes on: a full or silent disk
//! stops no VM from following its load.

mod answers;
mod orders;
mod persist;
mod reconcile;
mod release;
mod watching;

use crate::api::Done;
use crate::checked_attach::{CheckedAttach, Findings};
use crate::commands::{ANSWERED_WITHIN, Asked, Reply};
use crate::composition::{NodeBooks, Settings};
use crate::disk::Disk;
use crate::figures::Figures;
use crate::history::{History, Unwritten};
use crate::problem::{Problem, Report};
use crate::refused::Refused;
use crate::state::{Known, State, put};
use release::Release;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use watching::Watching;
use windlass_agent::{Agent, Lifecycle};
use windlass_drivers::any::AnyAttach;
use windlass_kit::blocking::BlockingTask;
use windlass_kit::clock::Clock;
use windlass_kit::config::Unread;
use windlass_kit::watchdog::{Pulse, Watchdog};
use windlass_protocol::status::Ordered;
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Moment, Resources, VmName, VmRecord};
use windlass_vm_files::folder::{Folder, Look, Step};
use windlass_vm_files::watch::Watch;

/// Between two looks, where one is due: a changed file is in force after two.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What a configuration that is not followed does to the one before it.
const IN_FORCE: &str = "the last valid one stays in force";

/// How a VM is reached that is known like this.
pub type Ways = Box<dyn Fn(&str, &Known, &Findings) -> CheckedAttach + Send>;

/// What the controller works with.
pub struct HostController {
    pub(crate) clock: Clock,
    pub(crate) agent: Agent,
    pub(crate) books: Option<Arc<dyn NodeBooks>>,
    pub(crate) findings: Findings,
    pub(crate) ways: Ways,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) watchdog: Watchdog,
    pub(crate) settings: Box<dyn Settings>,
    pub(crate) folder: Folder,
    pub(crate) state: State,
    pub(crate) history: History,
    /// What is wrong besides files, by subject.
    pub(crate) reports: BTreeMap<&'static str, Report>,
    pub(crate) figures: Figures,
    /// Releases since the start, by VM.
    pub(crate) releases: BTreeMap<String, Release>,
    /// Where the last order to freeze or thaw is shown.
    pub(crate) last_order: watch::Sender<Option<Ordered>>,
    /// Whether it is known which VMs there should be: the VM files were read at least once.
    pub(crate) listed: Arc<AtomicBool>,
    /// Looks so far: some things are not done at each.
    pub(crate) looks: u64,
    pub(crate) watching: Watching,
    pub(crate) blocking: BlockingTasks,
    /// Orders that are done, and answered once that is written down.
    pub(crate) unkept: Vec<Unkept>,
    pub(crate) orders: mpsc::Receiver<Asked<Self>>,
    /// Told when the configuration is to be read again.
    pub(crate) reloads: Arc<Notify>,
    pub(crate) stop: CancellationToken,
}

/// What disks are doing.
#[derive(Default)]
pub(crate) struct BlockingTasks {
    look: BlockingTask<Look>,
    watch: BlockingTask<io::Result<Watch>>,
    config: BlockingTask<Result<String, Unread>>,
    /// Up to which change of the state, and what came of it.
    save: BlockingTask<(u64, io::Result<()>)>,
    history: BlockingTask<Result<(), Unwritten>>,
}

/// An order that is done and not written down.
pub(crate) struct Unkept {
    change: u64,
    /// When it is answered at the latest.
    by: Moment,
    done: Done,
    reply: Reply<Done>,
}

// === impl HostController ===

impl HostController {
    /// Works until it is to stop; says on `begun` that every VM that was there counts.
    pub async fn run(mut self, begun: oneshot::Sender<()>) -> Result<(), Infallible> {
        let pulse = self.watchdog.clone().watch("host controller");
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.stop.clone();
        let begin = self.begin(&mut looks, &pulse);
        if stop.run_until_cancelled(begin).await.is_some() {
            // What waited for it may be gone.
            let _ = begun.send(());
            self.work(&mut looks, &pulse).await;
            self.reconcile();
        }
        self.end().await;
        Ok(())
    }

    async fn work(&mut self, looks: &mut Interval, pulse: &Pulse) {
        loop {
            pulse.turn("orders, files and disks");
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                (change, saved) = self.blocking.save.done() => self.saved(change, saved),
                written = self.blocking.history.done() => self.wrote_history(written),
                look = self.blocking.look.done() => {
                    pulse.at("what the VM files say to be followed");
                    self.take_look(look);
                }
                watch = self.blocking.watch.done() => self.watched(watch),
                text = self.blocking.config.done() => self.reloaded(text),
                _ = looks.tick() => {
                    pulse.at("all VMs to be reconciled");
                    self.tick();
                }
                () = self.reloads.notified(), if self.blocking.config.is_free() => self.reload(),
                Some(asked) = self.orders.recv() => {
                    pulse.at("an order to be carried out");
                    // Not one that came too late, or whose sender is gone.
                    if let Some(order) = asked.take(self.clock.now()) {
                        order(self);
                    }
                }
            }
        }
    }

    /// Carries out what a look at the VM files found.
    fn follow(&mut self, step: Step) {
        match step {
            Step::Manage(file) => {
                let name = &file.info.name.name;
                let heeds = self.agent.heeds(&file.info.name);
                info!(vm = name, released = !heeds, "vm file in force");
                // A person who let go of it takes it back with `resume`.
                if heeds {
                    self.manage(*file);
                }
            }
            Step::Forget(name) => {
                info!(vm = name, "vm file is gone");
                // Without a runner it was never there.
                if self.agent.forget(&VmName::on_host(name.as_str())).is_ok() {
                    self.keep_standing(&name);
                }
                self.state.change(|kept| kept.pause(&name, None));
            }
        }
    }

    /// Has the agent manage a VM as its file says, or paused as a person said.
    fn manage(&mut self, mut file: VmFile) {
        let name = file.info.name.name.clone();
        let paused = self.state.kept().pauses.get(&name).copied();
        let before = self.known(&name);
        let is_new = before.is_none();
        let known = Known {
            standing: Lifecycle::Managed,
            monitor: file.qmp.clone(),
            vcpu_removal: file.vcpu_removal,
            cpu_limit: file.info.cpu_limit,
            size: before.and_then(|known| known.size),
            max: file.info.bounds.max,
            record: VmRecord::of(&file.info),
        };
        // What was written down may be two seconds old: the largest that it may have been given.
        let ceiling = before.map_or(known.max, |before| {
            known.max.max(before.max).max(before.size.unwrap_or_default())
        });
        if before.is_none_or(|before| before.monitor != known.monitor) {
            self.findings.forget(&name);
        }
        // Of a VM that the agent has looked for, the agent knows better.
        let vm = VmName::on_host(name.as_str());
        if is_new || self.books.as_ref().is_some_and(|books| books.is_presumed(&vm)) {
            self.presume(&name, &known, ceiling);
        }
        let reach = (self.ways)(&name, &known, &self.findings);
        self.state.change(|kept| put(&mut kept.vms, &name, known));
        file.info.paused_until = file.info.paused_until.max(paused);
        self.agent.manage(windlass_vm_files::vm(&file), AnyAttach::new(reach));
    }

    /// Has the agent count a VM that is not managed.
    fn count(&mut self, name: &str, known: &Known) {
        let last = known.size.unwrap_or(known.max);
        self.presume(name, known, last);
        let reach = (self.ways)(name, known, &self.findings);
        self.state.change(|kept| put(&mut kept.vms, name, known.clone()));
        self.agent.count(VmName::on_host(name), AnyAttach::new(reach), last, known.standing);
    }

    /// Counts a VM with the most that it may have until its hypervisor was looked for: it may have
    /// been there all the while.
    fn presume(&self, name: &str, known: &Known, ceiling: Resources) {
        if let Some(books) = &self.books {
            books.presume(&VmName::on_host(name), known.record, ceiling);
        }
    }

    /// What may be reserved for VMs, where this process keeps the books.
    fn room(&self) -> Option<Resources> {
        self.books.as_ref().map(|books| books.room())
    }

    fn known(&self, name: &str) -> Option<&Known> {
        self.state.kept().vms.get(name)
    }

    fn standing(&self, name: &str) -> Option<Lifecycle> {
        self.agent.lifecycle(&VmName::on_host(name))
    }

    /// Has it written down how a VM stands.
    fn keep_standing(&mut self, name: &str) {
        // What the agent does not know any more was forgotten.
        let standing = self.standing(name).unwrap_or(Lifecycle::Removed);
        self.state.change(|kept| kept.stand(name, standing));
    }

    /// Keeps or ends a report; a new one is logged once.
    fn settle(&mut self, subject: &'static str, problems: Option<(Vec<Problem>, &str)>) {
        let Some((problems, meanwhile)) = problems else {
            if self.reports.remove(subject).is_some() {
                info!(subject, "as it should be again");
            }
            return;
        };
        let report =
            Report { subject: subject.to_owned(), problems, meanwhile: meanwhile.to_owned() };
        if self.reports.get(subject) != Some(&report) {
            warn!(%report, "needs a look");
            self.reports.insert(subject, report);
        }
    }
}
