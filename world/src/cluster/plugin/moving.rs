//! Has VMs move as the books say, one request after the other.

use super::{Plugin, Task, Turn};
use crate::cluster::call::{Answer, Call};
use std::time::Duration;
use windlass_plugin_core::pods::{Migration, Move, Step};
use windlass_protocol::NoSuccess;

/// Between two looks.
const LOOKS: Duration = Duration::from_secs(1);

// === impl Plugin ===

impl Plugin {
    /// Takes the next step of those that were to be taken at the last look, unless one is under way.
    pub(super) fn migrate(&mut self, turn: &mut Turn<'_>) {
        let is_step =
            |task: &Task| matches!(task, Task::Begin(_) | Task::BeginRead(_) | Task::EndMigration);
        if self.asked.values().any(|asked| is_step(&asked.task)) {
            return;
        }
        if self.serves(turn.now).is_err() {
            return self.moves.clear();
        }
        if self.moves.is_empty() && turn.now >= self.next_moves {
            self.moves = self.books.migration_plan(turn.now).into();
            self.next_moves = turn.now.after(LOOKS);
        }
        match self.moves.pop_front() {
            None => {}
            Some(Step::Begin(goes)) => {
                self.books.migration_sent(&goes);
                self.ask(turn, Call::Begin(goes.clone()), Task::Begin(goes));
            }
            Some(Step::Delete { name, uid, is_given_up }) => {
                turn.met.note_if("moves of VMs that a plugin gave up", is_given_up);
                self.ask(turn, Call::EndMigration { name, uid }, Task::EndMigration);
            }
        }
    }

    pub(super) fn begun(
        &mut self,
        turn: &mut Turn<'_>,
        goes: Move,
        answer: Result<Answer, NoSuccess>,
    ) {
        match answer {
            Ok(Answer::Migration(Some(made))) => {
                turn.met.note("VMs that a plugin had move");
                self.books.migration_seen(Migration::clone(&made), turn.now);
            }
            Ok(_) | Err(NoSuccess::Unknown) => {}
            Err(NoSuccess::Conflict) => {
                self.ask(turn, Call::ReadMigration(goes.migration()), Task::BeginRead(goes));
            }
            Err(NoSuccess::Gone | NoSuccess::Invalid | NoSuccess::Refused) => {
                self.books.migration_refused(&goes, turn.now);
            }
        }
    }

    /// One of its name is as good if it moves this VM.
    pub(super) fn begin_read(
        &mut self,
        turn: &mut Turn<'_>,
        goes: &Move,
        answer: Result<Answer, NoSuccess>,
    ) {
        match answer {
            Ok(Answer::Migration(there)) => match there.filter(|it| goes.is_served_by(it)) {
                Some(there) => self.books.migration_seen(Migration::clone(&there), turn.now),
                None => self.books.migration_refused(goes, turn.now),
            },
            Ok(_) | Err(NoSuccess::Unknown) => {}
            Err(_) => self.books.migration_refused(goes, turn.now),
        }
    }
}
