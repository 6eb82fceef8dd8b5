//! Resizes VMs' own pods as the books say.

use super::{Plugin, Task, Turn};
use crate::cluster::call::{Answer, Call};
use std::time::Duration;
use windlass_plugin_core::pods::{Kind, Resize, Written};
use windlass_plugin_core::writes::Heard;
use windlass_protocol::NoSuccess;
use windlass_protocol::VmName;

/// Between two looks at all VMs.
const LOOKS: Duration = Duration::from_secs(1);

// === impl Plugin ===

impl Plugin {
    /// Sends the resizes whose turn it is.
    pub(super) fn resize(&mut self, turn: &mut Turn<'_>) {
        if turn.now >= self.next_resizes && self.serves(turn.now).is_ok() {
            self.next_resizes = turn.now.after(LOOKS);
            let is_due = |vm: &&VmName| self.books.resize_due(turn.now, vm).is_some();
            let due: Vec<VmName> = self.books.resized().filter(is_due).cloned().collect();
            for vm in due {
                self.resizes.call_for(&vm, None);
            }
        }
        while let Some(vm) = self.resizes.take(turn.now) {
            let due =
                self.books.resize_due(turn.now, &vm).filter(|_| self.serves(turn.now).is_ok());
            let sent = due.filter(|resize| self.books.resize_sent(turn.now, resize));
            match sent {
                Some(resize) => {
                    let is_taken_back = matches!(resize.kind, Kind::GivesUp(_));
                    turn.met.note_if("resizes that were taken back", is_taken_back);
                    self.ask(turn, Call::Resize(resize.clone()), Task::Resize(resize));
                }
                None => drop(self.resizes.end(turn.now, &vm, Heard::NotSent)),
            }
        }
    }

    pub(super) fn resized(
        &mut self,
        turn: &mut Turn<'_>,
        resize: &Resize,
        answer: &Result<Answer, NoSuccess>,
    ) {
        let (written, heard) = Written::of_resize(answer);
        self.books.resize_written(turn.now, resize, written);
        self.resizes.end(turn.now, &resize.vm, heard);
        self.end_waits(turn);
    }
}
