//! Writes headroom pods as the books plan it.

use super::{Plugin, Task, Turn};
use crate::cluster::call::{Answer, Call};
use windlass_plugin_core::pods::{Change, Write, Written};
use windlass_protocol::NoSuccess;

// === impl Plugin ===

impl Plugin {
    pub(super) fn hold(&mut self, turn: &mut Turn<'_>) {
        if self.serves(turn.now).is_err() {
            return;
        }
        let plan = self.books.headroom_plan(turn.now);
        let due = self.headroom_pacing.due(plan, turn.now);
        let due = due.into_iter().filter(|change| !self.writes_headroom_of(&change.node));
        let due: Vec<Change> = due.collect();
        for change in due {
            if self.books.headroom_sent(&change) {
                let call = Call::Headroom(change.clone());
                self.ask(turn, call, Task::Headroom(change));
            }
        }
    }

    /// Whether a write of the headroom pod of a node is under way.
    pub(crate) fn writes_headroom_of(&self, node: &str) -> bool {
        let of = |task: &Task| matches!(task, Task::Headroom(it) if it.node == node);
        self.asked.values().any(|asked| of(&asked.task))
    }

    pub(super) fn written(
        &mut self,
        turn: &mut Turn<'_>,
        change: &Change,
        answer: Result<Answer, NoSuccess>,
    ) {
        let written = answer.map_or_else(Written::of, |_| Written::Answered);
        self.books.headroom_written(change, written);
        let is_done = written == Written::Answered;
        self.headroom_pacing.written(change, is_done, turn.now);
        let gives_up = matches!(change.write, Write::Resize { gives_up: true, .. });
        turn.met.note_if("headroom that was given up", is_done && gives_up);
    }
}
