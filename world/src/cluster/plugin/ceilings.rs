//! Records the ceilings of VMs, ahead of the answers that need them.

use super::{CeilingTask, Plugin, Task, Turn, Writing, pod_of};
use crate::cluster::call::{Answer, Call, Found};
use windlass_plugin_core::Books;
use windlass_plugin_core::ceiling_turn::{CeilingTurn, Next, Outcome, after};
use windlass_plugin_core::ceilings::CeilingWrite;
use windlass_plugin_core::cluster::Node;
use windlass_protocol::NoSuccess;
use windlass_protocol::VmName;

// === impl Plugin ===

impl Plugin {
    /// Sends the writes whose turn it is.
    pub(super) fn record(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        let looks = self.mending.begin(now, self.proposals.rests(now));
        if looks && self.serves(now).is_ok() {
            let nodes = self.books.nodes();
            let due = nodes
                .flat_map(|(_, node)| node.with_books(|books| books.ceilings_to_mend(now)))
                .collect();
            for vm in self.mending.choose(due) {
                turn.met.note("ceilings that were mended");
                self.proposals.call_for(&vm, None);
            }
        }
        while let Some(vm) = self.proposals.take(now) {
            self.write(turn, Writing { vm, turn: CeilingTurn::default() });
        }
    }

    fn write(&mut self, turn: &mut Turn<'_>, mut writing: Writing) {
        let (epoch, books) = (self.serves(turn.now).ok(), &self.books);
        let next = writing.turn.next(epoch, |epoch| books.ceiling_due(&writing.vm, epoch.into()));
        match next {
            Next::Ends(outcome) => self.end(turn, &writing.vm, outcome),
            Next::Reads(on) => self.find(turn, writing, on.uid().to_owned()),
            Next::Replaces { on, found, write } => {
                let uid = on.uid().to_owned();
                let (pod, next) = (writing.vm.clone(), write.next);
                let call = Call::Replace { pod, uid: uid.clone(), found, next };
                let task = CeilingTask::Replaces { uid, write };
                self.ask(turn, call, Task::Ceiling(writing, task));
            }
        }
    }

    fn find(&mut self, turn: &mut Turn<'_>, writing: Writing, uid: String) {
        let call = Call::Read(writing.vm.clone());
        self.ask(turn, call, Task::Ceiling(writing, CeilingTask::Reads { uid }));
    }

    pub(super) fn replaced(
        &mut self,
        turn: &mut Turn<'_>,
        writing: Writing,
        (uid, write): (String, &CeilingWrite),
        answer: Result<Answer, NoSuccess>,
    ) {
        let vm = &writing.vm;
        match answer.map_err(after) {
            Ok(_) => {
                self.change(vm, |books| books.ceiling_written(vm, write.next));
                self.end(turn, vm, Outcome::Written);
            }
            Err(Ok(())) => self.find(turn, writing, uid),
            Err(Err(outcome)) => self.end(turn, vm, outcome),
        }
    }

    pub(super) fn found(
        &mut self,
        turn: &mut Turn<'_>,
        mut writing: Writing,
        uid: &str,
        answer: Result<Answer, NoSuccess>,
    ) {
        match pod_of(answer).map(|read| read.filter(|pod| pod.uid == uid)) {
            Ok(Some(pod)) => {
                let (found, vm) = (Found::of(&pod), &writing.vm);
                self.change(vm, |books| books.ceiling_read(vm, found.ceiling()));
                writing.turn.read(found);
                self.write(turn, writing);
            }
            Ok(None) => self.end(turn, &writing.vm, Outcome::Gone),
            Err(why) => self.end(turn, &writing.vm, Outcome::of(why)),
        }
    }

    fn end(&mut self, turn: &mut Turn<'_>, vm: &VmName, outcome: Outcome) {
        if outcome != Outcome::Written {
            self.give_up(vm);
        }
        let (requests, _) = self.proposals.end(turn.now, vm, outcome.heard());
        self.go_on(turn, &requests);
        for (vm, requests) in self.proposals.give_up() {
            self.give_up(&vm);
            self.go_on(turn, &requests);
        }
    }

    fn change(&self, vm: &VmName, change: impl FnOnce(&mut Books)) {
        if let Some(node) = self.books.node_of(vm) {
            node.with_books(change);
        }
    }

    fn give_up(&self, vm: &VmName) {
        self.change(vm, |books| books.ceiling_given_up(vm));
    }
}
