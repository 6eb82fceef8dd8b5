//! What the controller does by itself: when it begins, at each look, and now and then.
//!
//! What was there before the restart counts before anything is granted.

use super::{
    HostController, IN_FORCE, Interval, Known, Lifecycle, Look, Moment, Pulse, Step, Unread,
    VmName, info, io, warn,
};
use crate::disk::{SILENT, unread};
use crate::problem::{Problem, Report};
use crate::state::{put, shrink};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use windlass_vm_files::watch::Watch;

/// Looks between two reconciliations, and between two tidyings: two seconds, a minute.
const RECONCILE: u64 = 4;
const TIDY: u64 = 120;

/// VMs that a problem of several names; of the others it says how many they are.
const NAMED: usize = 3;

impl HostController {
    /// Counts what was there before the restart, and manages what files say. A disk that does not
    /// answer is as one that cannot be read: it removes no VM.
    pub(super) async fn begin(&mut self, looks: &mut Interval, pulse: &Pulse) {
        self.agent.freeze(self.state.kept().frozen.is_some());
        self.tell_order();
        let before = self.state.kept().vms.clone();
        for (name, known) in &before {
            self.presume(name, known, known.max.max(known.size.unwrap_or_default()));
        }
        let look = self.first_look(looks, pulse).await;
        let is_read = look.is_ok();
        let steps = self.folder.observe(look, true);
        for (name, known) in before {
            let filed = self.folder.get(&name).is_some();
            let declared = (filed || is_read).then_some(filed);
            let standing = known.standing.after_restart(declared);
            // A VM that has a file, also one that came back while no host ran, is taken up below.
            if standing != Lifecycle::Managed {
                self.count(&name, &Known { standing, ..known });
            }
        }
        for step in steps {
            self.follow(step);
        }
        // Not before each VM is taken up: what is billed counts on it.
        self.listed.store(is_read, Ordering::Relaxed);
        self.warn_of_files(&[]);
        self.reconcile();
    }

    /// The first look at the VM files; one that is late goes on, and counts when it is done.
    async fn first_look(&mut self, looks: &mut Interval, pulse: &Pulse) -> Look {
        self.look();
        loop {
            pulse.turn("the first look at the VM files");
            tokio::select! {
                biased;
                look = self.blocking.look.done() => return look,
                _ = looks.tick() => {
                    if self.blocking.look.is_late() {
                        return Err(unread(&SILENT));
                    }
                }
            }
        }
    }

    /// Has the VM files looked at, if a look is due; watches them anew, and looks at everything else,
    /// now and then.
    pub(super) fn tick(&mut self) {
        let due = self.watching.tick(self.looks);
        if due.watch {
            let disk = self.disk.clone();
            self.blocking.watch.start(|| disk.watch());
        }
        if due.look {
            self.look();
        }
        self.refute();
        self.say_what_is_late();
        self.looks += 1;
        if self.looks.is_multiple_of(RECONCILE) {
            self.reconcile();
        }
        if self.looks.is_multiple_of(TIDY) {
            self.history.forget_before(self.clock.now());
        }
    }

    /// Has the VM files looked at, unless a look is under way.
    pub(super) fn look(&mut self) {
        if self.blocking.look.is_free() {
            self.watching.looks();
            let disk = self.disk.clone();
            self.blocking.look.start(|| disk.look());
        }
    }

    /// Begins to watch the VM files, or reports why it cannot.
    pub(super) fn watched(&mut self, watch: io::Result<Watch>) {
        let problem = self.watching.take_up(watch);
        let meanwhile = "it is looked at twice a second";
        self.settle("vms_dir", problem.map(|problem| (vec![problem], meanwhile)));
    }

    /// Follows what a look at the VM files found, and says what is new of wrong ones. What the first
    /// look finds counts at once.
    pub(super) fn take_look(&mut self, look: Look) {
        let (before, is_read) = (self.folder.reports(), look.is_ok());
        let is_first = !self.listed.load(Ordering::Relaxed);
        for step in self.folder.observe(look, is_first) {
            self.follow(step);
        }
        if is_read {
            self.listed.store(true, Ordering::Relaxed);
            self.forget_unfiled();
        } else {
            self.watching.look_twice();
        }
        self.warn_of_files(&before);
    }

    /// Forgets each VM whose file went while the host could not read the folder: no look ever found
    /// that file, so none finds that it is gone.
    fn forget_unfiled(&mut self) {
        let filed: BTreeSet<&str> = self.folder.entries().map(|(stem, ..)| stem).collect();
        for vm in self.agent.undeclared(|vm| filed.contains(vm.name.as_str())) {
            self.follow(Step::Forget(vm.name));
        }
    }

    /// Says which files are wrong, but for what was said `before`.
    pub(super) fn warn_of_files(&self, before: &[Report]) {
        // The folder and each file have one report each.
        let before: BTreeMap<&str, &Report> =
            before.iter().map(|report| (report.subject.as_str(), report)).collect();
        for report in self.folder.reports() {
            if before.get(report.subject.as_str()) != Some(&&report) {
                warn!(%report, "vm file is not as it should be");
            }
        }
    }

    /// Writes down what became of the VMs, and reports what does not fit together.
    pub(super) fn reconcile(&mut self) {
        self.take_standings();
        self.look_at_releases();
        self.end_pauses();
        self.keep_history();
        self.weigh_minima();
        self.count_ports();
        self.keep();
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.figures.frozen.set(i64::from(self.agent.is_frozen()));
        self.figures.vm_files.set(count(self.folder.valid().count()));
        self.figures.problems.set(count(self.problems().len()));
        self.figures.tracked.set(count(self.agent.lifecycles().len()));
    }

    /// What each VM was last seen to have, and which are no more.
    fn take_standings(&mut self) {
        let standings = self.agent.lifecycles();
        let ports = self.agent.ports();
        let filed: BTreeSet<&str> = self.folder.entries().map(|(stem, ..)| stem).collect();
        self.state.change(|kept| {
            let tracked: BTreeSet<&str> =
                standings.iter().map(|(vm, ..)| vm.name.as_str()).collect();
            let mut changed = shrink(&mut kept.vms, |name, _| tracked.contains(name));
            for (vm, standing, upper) in &standings {
                changed |= kept.see(&vm.name, *upper);
                changed |= kept.stand(&vm.name, *standing);
            }
            for (vm, port) in &ports {
                if kept.vms.contains_key(&vm.name) {
                    changed |= put(&mut kept.ports, &vm.name, *port);
                }
            }
            let known = &kept.vms;
            changed |= shrink(&mut kept.ports, |name, _| known.contains_key(name));
            let is_known = |name: &str| filed.contains(name) || known.contains_key(name);
            changed | shrink(&mut kept.orders, |name, _| is_known(name))
        });
        self.findings.retain(|vm| self.state.kept().vms.contains_key(vm));
    }

    /// A VM that was presumed to be there, was looked for and was not found is not there.
    fn refute(&self) {
        let Some(books) = &self.books else { return };
        for vm in books.presumed() {
            if self.agent.is_absent(&vm) {
                books.refute(&vm);
            }
        }
    }

    fn end_pauses(&mut self) {
        let now = self.clock.now();
        self.state.change(|kept| shrink(&mut kept.pauses, |_, until| *until > now));
    }

    /// Takes in the decisions and the books' answers of one VM that are new.
    pub(super) fn take_history_of(&mut self, vm: &VmName) {
        let notes = self.books.as_ref().map_or(Vec::new(), |books| books.notes(vm));
        let closed = self.agent.closed_after(vm, self.history.written(&vm.name));
        self.history.decided(&vm.name, &closed);
        self.history.noted(&vm.name, notes);
    }

    /// Minima above the room: some VM never gets its minimum.
    fn weigh_minima(&mut self) {
        let (Some(room), minima) = (self.room(), self.folder.minima()) else { return };
        let limit = format!(
            "the minima of all VM files come to {minima}, which is more than the node's {room}"
        );
        let over = !room.covers(minima);
        let problem = over.then(|| {
            (vec![Problem::without_value("min", limit)], "the VM that comes last stays short")
        });
        self.settle("node", problem);
    }

    /// Each VM needs a port at which its informant calls back.
    fn count_ports(&mut self) {
        let without = self.agent.without_port();
        let names: Vec<&str> = without.iter().map(|vm| vm.name.as_str()).take(NAMED).collect();
        let problem = (!names.is_empty()).then(|| {
            let more = match without.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let limit = format!(
                "no port could be had for {}{more}: each is another VM's, or cannot be listened on; widen \
                 the range, or correct callback_listen",
                names.join(", ")
            );
            let meanwhile = "a VM without a port has no session, so it grows and does not shrink";
            (vec![Problem::without_value("", limit)], meanwhile)
        });
        self.settle("callback_ports", problem);
    }

    /// Has the configuration read again.
    pub(super) fn reload(&mut self) {
        let disk = self.disk.clone();
        self.blocking.config.start(|| disk.config());
        self.watching.look_twice();
    }

    /// Follows what the configuration says, after it was read again.
    pub(super) fn reloaded(&mut self, text: Result<String, Unread>) {
        let followed = text.map_err(|unread| vec![unread.into()]);
        let file = self.settings.file();
        match followed.and_then(|text| self.settings.follow(&text)) {
            Ok(waits) => {
                info!(file, "configuration read again");
                let problem = (!waits.is_empty()).then(|| {
                    let limit = "has changed, and takes effect at the next start";
                    let problem = Problem::without_value(waits.join(", "), limit);
                    (vec![problem], "what was read at the start is in force")
                });
                self.settle(file, problem);
            }
            Err(problems) => {
                // Said after each SIGHUP.
                self.reports.remove(file);
                self.settle(file, Some((problems, IN_FORCE)));
            }
        }
    }

    /// Whether this moment has come.
    pub(super) fn is_past(&self, moment: Moment) -> bool {
        moment <= self.clock.now()
    }
}
