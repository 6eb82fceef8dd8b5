//! Records the ceilings of VMs, ahead of the answers that need them.

use super::{CeilingTask, Plugin, Proposals, Task, Turn, Writing, pod_of};
use crate::cluster::call::{Answer, Call, Found};
use std::time::Duration;
use windlass_plugin_core::ceilings::CeilingWrite;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::CeilingOn;
use windlass_plugin_core::{Books, NoSuccess};
use windlass_protocol::VmName;

/// A write that finds another annotation than was known is made so often in all.
const ATTEMPTS: u32 = 4;
/// Between two looks at ceilings that are too high or too low.
const LOOKS: Duration = Duration::from_secs(10);
/// Writes that are under way at a time.
const AT_ONCE: usize = 32;

/// What came of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Written,
    NotSent,
    Failed,
    NoAnswer,
}

// === impl Plugin ===

impl Plugin {
    /// Sends the writes whose turn it is.
    pub(super) fn record(&mut self, turn: &mut Turn<'_>) {
        let (now, failures) = (turn.now, self.proposals.failures);
        if now >= self.proposals.next_look && failures == 0 {
            self.proposals.next_look = now.after(LOOKS);
            if self.serves(now).is_ok() {
                let nodes = self.books.nodes();
                let due = nodes
                    .flat_map(|(_, node)| node.with_books(|books| books.ceilings_to_mend(now)));
                for vm in due.collect::<Vec<_>>() {
                    turn.met.note("ceilings that were mended");
                    self.proposals.put(&vm);
                }
            }
        }
        let at_once = match failures {
            0 => AT_ONCE,
            _ if now < self.proposals.rests_until => 0,
            _ => 1,
        };
        while self.proposals.under_way.len() < at_once
            && let Some((vm, number)) = self.proposals.take()
        {
            self.write(turn, Writing { vm, number, left: ATTEMPTS, found: None });
        }
    }

    fn write(&mut self, turn: &mut Turn<'_>, mut writing: Writing) {
        if writing.left == 0 {
            return self.end(turn, &writing, Ended::Failed);
        }
        writing.left -= 1;
        let Ok(epoch) = self.serves(turn.now) else {
            return self.end(turn, &writing, Ended::NotSent);
        };
        let Some((CeilingOn::Pod(_, uid), due)) = self.books.ceiling_due(&writing.vm, epoch.into())
        else {
            return self.end(turn, &writing, Ended::NotSent);
        };
        let pod = writing.vm.clone();
        match writing.found.take().or(due.known.map(Found::Ceiling)) {
            Some(found) => {
                let call = Call::Replace { pod, uid: uid.clone(), found, next: due.next };
                self.ask(
                    turn,
                    call,
                    Task::Ceiling(writing, CeilingTask::Replaces { uid, write: due }),
                );
            }
            None => self.find(turn, writing, uid),
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
        match answer {
            Ok(_) => {
                let vm = &writing.vm;
                self.change(vm, |books| books.ceiling_written(vm, write.next));
                self.end(turn, &writing, Ended::Written);
            }
            Err(NoSuccess::Conflict | NoSuccess::Invalid) => self.find(turn, writing, uid),
            Err(NoSuccess::Gone | NoSuccess::Refused) => self.end(turn, &writing, Ended::Failed),
            Err(NoSuccess::Unknown) => self.end(turn, &writing, Ended::NoAnswer),
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
                writing.found = Some(found);
                self.write(turn, writing);
            }
            Ok(None) => self.end(turn, &writing, Ended::Failed),
            Err(NoSuccess::Unknown) => self.end(turn, &writing, Ended::NoAnswer),
            Err(_) => self.end(turn, &writing, Ended::Failed),
        }
    }

    fn end(&mut self, turn: &mut Turn<'_>, writing: &Writing, ended: Ended) {
        if ended != Ended::Written {
            self.give_up(&writing.vm);
        }
        match ended {
            Ended::NoAnswer => {
                self.proposals.failures = self.proposals.failures.saturating_add(1);
                let wait = Duration::from_millis(100 << self.proposals.failures.min(4));
                self.proposals.rests_until = turn.now.after(wait);
            }
            Ended::Written | Ended::Failed => self.proposals.failures = 0,
            Ended::NotSent => {}
        }
        self.finish(turn, &writing.vm, writing.number);
        while self.proposals.failures > 1
            && let Some((vm, number)) = self.proposals.take()
        {
            self.give_up(&vm);
            self.finish(turn, &vm, number);
        }
    }

    fn finish(&mut self, turn: &mut Turn<'_>, vm: &VmName, number: u64) {
        self.proposals.under_way.remove(vm);
        self.answer_those(turn, |waiting| waiting.turn == Some(number));
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

// === impl Proposals ===

impl Proposals {
    pub(super) fn put(&mut self, vm: &VmName) {
        if !self.order.contains(vm) {
            self.order.push_back(vm.clone());
        }
    }

    /// The VM whose turn it is, and the number of the turn, for which the requests of the VM wait from here on.
    fn take(&mut self) -> Option<(VmName, u64)> {
        let next = self.order.iter().position(|vm| !self.under_way.contains(vm))?;
        let vm = self.order.remove(next)?;
        self.turns += 1;
        for waiting in self.waiting.iter_mut().filter(|it| it.asks.vm == vm && it.turn.is_none()) {
            waiting.turn = Some(self.turns);
        }
        self.under_way.insert(vm.clone());
        Some((vm, self.turns))
    }
}
