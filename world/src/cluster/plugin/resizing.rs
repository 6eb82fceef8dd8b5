//! Resizes VMs' own pods as the books say.

use super::{Plugin, Task, Turn};
use crate::cluster::call::{Answer, Call};
use std::time::Duration;
use windlass_plugin_core::NoSuccess;
use windlass_plugin_core::pods::{Kind, Resize, Written};
use windlass_protocol::{Moment, VmName};

/// Resizes that are under way at a time.
const AT_ONCE: usize = 32;

/// How resizes fare.
#[derive(Debug, Default)]
pub(super) struct Resizes {
    /// Those in a row that had no answer.
    failures: u32,
    rests_until: Moment,
}

// === impl Plugin ===

impl Plugin {
    /// Sends what is due.
    pub(super) fn resize(&mut self, turn: &mut Turn<'_>) {
        if self.serves(turn.now).is_err() || turn.now < self.resizes.rests_until {
            return;
        }
        let at_once = if self.resizes.failures == 0 { AT_ONCE } else { 1 };
        for vm in self.books.resized().cloned().collect::<Vec<_>>() {
            let due = self.books.resize_due(turn.now, &vm).filter(|_| !self.resizes_pod_of(&vm));
            let Some(resize) = due.filter(|_| self.resizes_under_way().count() < at_once) else {
                continue;
            };
            if self.books.resize_sent(turn.now, &resize) {
                let is_taken_back = matches!(resize.kind, Kind::GivesUp(_));
                turn.met.note_if("resizes that were taken back", is_taken_back);
                self.ask(turn, Call::Resize(resize.clone()), Task::Resize(resize));
            }
        }
    }

    pub(super) fn resized(
        &mut self,
        turn: &mut Turn<'_>,
        resize: &Resize,
        answer: &Result<Answer, NoSuccess>,
    ) {
        let written = match answer {
            Ok(_) => Written::Answered,
            // A busy API server says so, too; then no watch shows another revision, and the same is written again.
            Err(NoSuccess::Gone | NoSuccess::Conflict | NoSuccess::Unknown) => Written::Unknown,
            Err(NoSuccess::Invalid | NoSuccess::Refused) => Written::Refused,
        };
        self.books.resize_written(turn.now, resize, written);
        if matches!(answer, Err(NoSuccess::Unknown)) {
            self.resizes.failures = self.resizes.failures.saturating_add(1);
            let wait = Duration::from_millis(100 << self.resizes.failures.min(4));
            self.resizes.rests_until = turn.now.after(wait);
        } else {
            self.resizes = Resizes::default();
        }
        self.end_waits(turn);
    }

    /// Whether a resize of the pod of this VM is under way.
    fn resizes_pod_of(&self, vm: &VmName) -> bool {
        self.resizes_under_way().any(|resize| resize.vm == *vm)
    }

    fn resizes_under_way(&self) -> impl Iterator<Item = &Resize> {
        self.asked.values().filter_map(|asked| match &asked.task {
            Task::Resize(resize) => Some(resize),
            _ => None,
        })
    }
}
