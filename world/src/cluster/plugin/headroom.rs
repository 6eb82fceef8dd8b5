//! Writes headroom pods as the books plan it.

use super::{Plugin, Task, Turn};
use crate::cluster::call::{Answer, Call};
use std::time::Duration;
use windlass_plugin_core::NoSuccess;
use windlass_plugin_core::pods::{Change, Write, Written};
use windlass_protocol::Moment;

/// Between writes of one node that fail.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// As long after its wait a node's failures count.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

// === impl Plugin ===

impl Plugin {
    pub(super) fn hold(&mut self, turn: &mut Turn<'_>) {
        if self.serves(turn.now).is_err() {
            return;
        }
        let now = turn.now;
        self.headroom_waits.retain(|_, (_, until)| now < until.after(FORGOTTEN_AFTER));
        let is_due =
            |change: &Change| self.headroom_waits.get(&change.node).is_none_or(|it| it.1 <= now);
        let plan = self.books.headroom_plan(now);
        let due: Vec<Change> = plan
            .into_iter()
            .filter(|change| is_due(change) && !self.writes_headroom_of(&change.node))
            .collect();
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
        let waits = match (written, &change.write) {
            (Written::Answered, Write::Resize { gives_up: false, .. }) => return,
            (Written::Answered, Write::Create { .. }) => false,
            (Written::Answered, Write::Resize { .. } | Write::Delete { .. })
            | (Written::Refused | Written::Unknown, _) => true,
        };
        turn.met.note_if("headroom that was given up", waits && written == Written::Answered);
        self.wait(turn.now, &change.node, waits);
    }

    fn wait(&mut self, now: Moment, node: &str, has_failed: bool) {
        let failures = self.headroom_waits.get(node).map_or(0, |(failures, _)| *failures);
        let failures = failures + u32::from(has_failed);
        let wait = FIRST_WAIT.saturating_mul(1 << failures.min(4));
        self.headroom_waits.insert(node.to_owned(), (failures, now.after(wait)));
    }
}
