//! What the steward does by itself, at each look and now and then.

use super::super::config::HostConfig;
use super::{Look, Moment, Step, Steward, Unread, VmName, info, warn};
use crate::problem::{Problem, Report};
use std::collections::BTreeSet;

/// Looks between two rounds, and between two tidyings: two seconds, a minute.
const ROUND: u64 = 4;
const TIDY: u64 = 120;

impl Steward {
    /// Has the VM files looked at, and now and then everything else.
    pub(super) fn tick(&mut self) {
        self.look();
        self.refute();
        self.say_what_is_late();
        self.looks += 1;
        if self.looks.is_multiple_of(ROUND) {
            self.round();
        }
        if self.looks.is_multiple_of(TIDY) {
            self.history.forget_before(self.clock.now());
        }
    }

    /// Has the VM files looked at, unless a look is under way.
    pub(super) fn look(&mut self) {
        let disk = self.disk.clone();
        self.errands.look.start(|| disk.look());
    }

    /// Follows what a look at the VM files found, and says what is new of wrong ones.
    pub(super) fn take_look(&mut self, look: Look) {
        let (before, is_read) = (self.folder.reports(), look.is_ok());
        for step in self.folder.observe(look, false) {
            self.follow(step);
        }
        if is_read {
            self.forget_unfiled();
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
        for report in self.folder.reports() {
            if !before.contains(&report) {
                warn!(%report, "vm file is not as it should be");
            }
        }
    }

    /// Writes down what became of the VMs, and reports what does not fit together.
    pub(super) fn round(&mut self) {
        self.take_standings();
        self.look_at_releases();
        self.end_pauses();
        self.keep_history();
        self.weigh_minima();
        self.keep();
        let (files, problems) = (self.folder.valid().count(), self.problems().len());
        self.metrics.observe(self.agent.is_frozen(), files, problems);
    }

    /// What each VM was last seen to have, and which are no more.
    fn take_standings(&mut self) {
        let standings = self.agent.standings();
        let ports = self.agent.ports();
        let filed: BTreeSet<&str> = self.folder.entries().map(|(stem, ..)| stem).collect();
        self.state.change(|kept| {
            kept.vms.retain(|name, _| standings.iter().any(|(vm, ..)| vm.name == *name));
            for (vm, standing, upper) in standings {
                if let Some(known) = kept.vms.get_mut(&vm.name) {
                    known.size = upper;
                    known.standing = standing;
                }
            }
            kept.ports.extend(ports.into_iter().map(|(vm, port)| (vm.name, port)));
            let known = &kept.vms;
            kept.ports.retain(|name, _| known.contains_key(name));
            let filed = |name: &String| filed.contains(name.as_str());
            kept.orders.retain(|name, _| filed(name) || known.contains_key(name));
        });
        self.findings.retain(|vm| self.state.kept().vms.contains_key(vm));
    }

    /// A VM that was presumed to be there, was looked for and was not found is not there.
    fn refute(&self) {
        for vm in self.ledger.presumed() {
            if self.agent.is_absent(&vm) {
                self.ledger.refute(&vm);
            }
        }
    }

    fn end_pauses(&mut self) {
        let now = self.clock.now();
        self.state.change(|kept| kept.pauses.retain(|_, until| *until > now));
    }

    /// Takes in the decisions and the books' answers of one VM that are new.
    pub(super) fn take_history_of(&mut self, vm: &VmName) {
        let notes = self.books.with_books(|books| books.notes(vm));
        let closed = self.agent.decisions(vm).map(|said| said.closed).unwrap_or_default();
        self.history.decided(&vm.name, &closed);
        self.history.noted(&vm.name, notes);
    }

    /// Minima above the room: somebody will never get his minimum.
    fn weigh_minima(&mut self) {
        let (room, minima) = (self.books.with_books(|books| books.room()), self.folder.minima());
        let limit = format!(
            "the minima of all VM files come to {minima}, which is more than the node's {room}"
        );
        let over = !room.covers(minima);
        let problem =
            over.then(|| (Problem::without_value("min", limit), "who comes last stays short"));
        self.settle("node", problem);
    }

    /// Has host.toml read again.
    pub(super) fn reload(&mut self) {
        let disk = self.disk.clone();
        self.errands.config.start(|| disk.config());
    }

    /// Follows what host.toml says, after it was read again.
    pub(super) fn reloaded(&mut self, text: Result<String, Unread>) {
        let text = match text {
            Ok(text) => text,
            Err(unread) => return self.keep_config(vec![unread.into()]),
        };
        let config = match HostConfig::from_text(&text) {
            Ok(config) => config,
            Err(problems) => return self.keep_config(problems),
        };
        for problem in self.machine.overcommitted(config.node) {
            warn!(%problem, "host.toml gives VMs more than this machine has");
        }
        match self.machine.room(config.node) {
            Ok(room) => self.books.with_books(|books| books.set_room(room)),
            Err(problem) => return self.keep_config(vec![problem]),
        }
        info!(room = %self.books.with_books(|books| books.room()), "host.toml read again");
        let waits = config.needs_restart(&self.config).join(", ");
        self.config.node = config.node;
        let problem = (!waits.is_empty()).then(|| {
            let limit = "has changed, and takes effect at the next start";
            (Problem::without_value(waits, limit), "what was read at the start is in force")
        });
        self.settle("host.toml", problem);
    }

    fn keep_config(&mut self, problems: Vec<Problem>) {
        let report = Report {
            subject: "host.toml".to_owned(),
            problems,
            meanwhile: "the last valid one stays in force".to_owned(),
        };
        warn!(%report, "host.toml is not as it should be");
        self.reports.insert("host.toml", report);
    }

    /// Whether this moment has come.
    pub(super) fn is_past(&self, moment: Moment) -> bool {
        moment <= self.clock.now()
    }
}
