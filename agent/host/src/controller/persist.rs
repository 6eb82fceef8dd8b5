//! What the controller writes down, and when an order is answered.
//!
//! One writing of the state is under way at most; what changed meanwhile is written together,
//! after it. An order is answered once a writing that has its change went well or failed, or
//! once the disk took too long.

use super::{
    ANSWERED_WITHIN, Done, HostController, IN_FORCE, Problem, Refused, Reply, Unkept, Unwritten, io,
};
use crate::disk::{SILENT, unread};
use std::time::Duration;
use tokio::time::timeout;

/// What the last writing may take when the host ends.
const LAST: Duration = Duration::from_secs(2);

const FORGOTTEN: &str = "it will not survive a restart";

impl HostController {
    /// Answers an order: at once if it is declined, else once it is written down.
    pub(crate) fn answer(&mut self, done: Result<Done, Refused>, reply: Reply<Done>) {
        let change = self.state.changes();
        match done {
            Ok(done) if !self.state.is_written(change) => {
                let by = self.clock.now().after(ANSWERED_WITHIN);
                self.unkept.push(Unkept { change, by, done, reply });
                self.keep();
            }
            // The client may be gone by now.
            answer => drop(reply.send(answer)),
        }
    }

    /// Has what changed written, unless a writing is under way.
    pub(super) fn keep(&mut self) {
        if !self.blocking.save.is_free() {
            return;
        }
        let change = self.state.changes();
        match self.state.unwritten() {
            Some(Ok(text)) => {
                let saving = self.disk.save(text);
                self.blocking.save.start(|| Box::pin(async move { (change, saving.await) }));
            }
            Some(Err(error)) => self.saved(change, Err(error)),
            None => {}
        }
    }

    /// A writing of the state ended. What cannot be written is said, and tried again.
    pub(super) fn saved(&mut self, change: u64, result: io::Result<()>) {
        match &result {
            Ok(()) => {
                self.state.wrote(change);
                self.settle("state", None);
            }
            Err(error) => self.settle("state", Some((vec![unwritten(error)], FORGOTTEN))),
        }
        let why = result.err().map(|error| error.to_string());
        self.answer_those(why.as_deref(), |order| order.change <= change);
        if !self.unkept.is_empty() {
            self.keep();
        }
    }

    /// Takes in what is new of every VM, and has it written.
    pub(super) fn keep_history(&mut self) {
        for (vm, ..) in self.agent.lifecycles() {
            self.take_history_of(&vm);
        }
        self.write_history();
    }

    fn write_history(&mut self) {
        if !self.blocking.history.is_free() {
            return;
        }
        match self.history.take_due() {
            Some(batch) => {
                let disk = self.disk.clone();
                self.blocking.history.start(|| disk.write(batch));
            }
            None => self.settle("history", None),
        }
    }

    /// A writing of the history ended.
    pub(super) fn wrote_history(&mut self, result: Result<(), Unwritten>) {
        match result {
            Ok(()) => self.write_history(),
            Err(Unwritten { lines, error }) => {
                self.history.give_back(lines);
                self.settle("history", Some((vec![unwritten(&error)], FORGOTTEN)));
            }
        }
    }

    /// Says which disks do not answer, and to whom an answer is due all the same.
    pub(super) fn say_what_is_late(&mut self) {
        if self.blocking.save.is_late() {
            self.settle("state", Some((vec![unwritten(&SILENT)], FORGOTTEN)));
        }
        if self.blocking.history.is_late() {
            self.settle("history", Some((vec![unwritten(&SILENT)], FORGOTTEN)));
        }
        if self.blocking.config.is_late() {
            self.settle(self.settings.file(), Some((vec![unread(&SILENT)], IN_FORCE)));
        }
        if self.blocking.look.is_late() {
            self.take_look(Err(unread(&SILENT)));
        }
        let now = self.clock.now();
        self.answer_those(Some(SILENT), |order| order.by <= now);
    }

    /// Writes what is left, as far as the disk does in time.
    pub(super) async fn end(&mut self) {
        // What does not go to the disk in time is said to those who wait for it.
        let _ = timeout(LAST, self.write_the_rest()).await;
        self.answer_those(Some(SILENT), |_| true);
    }

    async fn write_the_rest(&mut self) {
        loop {
            self.keep();
            if self.blocking.save.is_free() {
                break;
            }
            let (change, saved) = self.blocking.save.done().await;
            let failed = saved.is_err();
            self.saved(change, saved);
            if failed {
                break;
            }
        }
        loop {
            self.write_history();
            if self.blocking.history.is_free() {
                return;
            }
            let written = self.blocking.history.done().await;
            if let Err(Unwritten { lines, error: _ }) = written {
                return self.history.give_back(lines);
            }
        }
    }

    /// Answers orders that are done: they are written down, or why they are not.
    fn answer_those(&mut self, why: Option<&str>, which: impl Fn(&Unkept) -> bool) {
        for order in self.unkept.extract_if(.., |order| which(order)) {
            let answer = match why {
                None => Ok(order.done),
                Some(why) => Err(Refused::NotKept(why.to_owned())),
            };
            // The client may be gone by now.
            drop(order.reply.send(answer));
        }
    }
}

fn unwritten(why: &dyn std::fmt::Display) -> Problem {
    Problem::without_value("", format!("cannot be written: {why}"))
}
