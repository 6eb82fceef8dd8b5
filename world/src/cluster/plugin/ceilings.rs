//! Records the ceilings of VMs, ahead of the answers that need them.

use super::{CeilingTask, Plugin, Task, Turn, Writing, pod_of};
use crate::cluster::call::{Answer, Call, Found};
use windlass_plugin_core::Books;
use windlass_plugin_core::ceiling_turn::{CeilingTurn, Next, Outcome, after};
use windlass_plugin_core::ceilings::CeilingWrite;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::CeilingOn;
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
            self.fit_waiting(turn);
        }
        while let Some(vm) = self.proposals.take(now) {
            self.write(turn, Writing { vm, turn: CeilingTurn::default() });
        }
    }

    /// Looks for ceilings that keep pods from a place.
    fn fit_waiting(&mut self, turn: &mut Turn<'_>) {
        let fits = |task: &Task| matches!(task, Task::FitRead { .. } | Task::Fit);
        if self.asked.values().any(|asked| fits(&asked.task)) {
            return;
        }
        for (pod, on) in self.books.ceilings_to_fit(turn.now) {
            if let CeilingOn::Object(name, _) = &on {
                self.ask(turn, Call::ReadObject(name.clone()), Task::FitRead { pod, on });
            }
        }
    }

    pub(super) fn fit(
        &mut self,
        turn: &mut Turn<'_>,
        pod: &VmName,
        on: CeilingOn,
        answer: Result<Answer, NoSuccess>,
    ) {
        let Ok(epoch) = self.serves(turn.now) else { return };
        let Ok(Answer::Object(Some(read))) = answer else { return };
        if let Some(next) = self.books.fitting_ceiling(pod, &read.object, epoch.into()) {
            let found = Found::Absent(read.object.revision.clone());
            self.ask(turn, Call::Replace { on, found, next }, Task::Fit);
        }
    }

    fn write(&mut self, turn: &mut Turn<'_>, mut writing: Writing) {
        let (epoch, books) = (self.serves(turn.now).ok(), &self.books);
        let next = writing.turn.next(epoch, |epoch| books.ceiling_due(&writing.vm, epoch.into()));
        match next {
            Next::Ends(outcome) => self.end(turn, &writing.vm, outcome),
            Next::Reads(on) => self.find(turn, writing, on),
            Next::Replaces { on, found, write } => {
                let call = Call::Replace { on: on.clone(), found, next: write.next };
                let task = CeilingTask::Replaces { on, write };
                self.ask(turn, call, Task::Ceiling(writing, task));
            }
        }
    }

    fn find(&mut self, turn: &mut Turn<'_>, writing: Writing, on: CeilingOn) {
        let call = match &on {
            CeilingOn::Pod(name, _) => Call::Read(name.clone()),
            CeilingOn::Object(name, _) => Call::ReadObject(name.clone()),
        };
        self.ask(turn, call, Task::Ceiling(writing, CeilingTask::Reads { on }));
    }

    pub(super) fn replaced(
        &mut self,
        turn: &mut Turn<'_>,
        writing: Writing,
        (on, write): (CeilingOn, &CeilingWrite),
        answer: Result<Answer, NoSuccess>,
    ) {
        let vm = &writing.vm;
        match answer.map_err(after) {
            Ok(_) => {
                self.change(vm, |books| books.ceiling_written(vm, write.next));
                self.end(turn, vm, Outcome::Written);
            }
            Err(Ok(())) => self.find(turn, writing, on),
            Err(Err(outcome)) => self.end(turn, vm, outcome),
        }
    }

    pub(super) fn found(
        &mut self,
        turn: &mut Turn<'_>,
        mut writing: Writing,
        on: &CeilingOn,
        answer: Result<Answer, NoSuccess>,
    ) {
        let uid = on.uid();
        let found = match answer {
            Ok(Answer::Object(read)) => {
                let read = read.filter(|read| read.machine.uid == uid);
                Ok(read.map(|read| Found::on(&read)))
            }
            answer => pod_of(answer)
                .map(|read| read.filter(|pod| pod.uid == uid).map(|pod| Found::of(&pod))),
        };
        match found {
            Ok(Some(found)) => {
                let vm = &writing.vm;
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
