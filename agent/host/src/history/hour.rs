//! The last hour of each VM, as a plain value: what happened, and what of it is due to be written.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use windlass_protocol::{Decision, Moment, Note, Outcome};

/// How far back is looked.
pub const LENGTH: Duration = Duration::from_secs(3600);

/// Notes of one VM that are kept: they change with each grant to another VM.
pub(super) const MOST: usize = 500;

/// A note that grows is written again after this: a restart may then cost its last minutes.
const WRITE_AGAIN: Duration = Duration::from_secs(300);

/// Lines that wait for a disk; the oldest go first.
pub(super) const MOST_DUE: usize = 5_000;

/// Lines that are written at a time.
const AT_A_TIME: usize = 500;

/// The last hour, by VM.
#[derive(Debug, Default)]
pub struct History {
    pub(super) vms: BTreeMap<String, Hour>,
    due: VecDeque<Line>,
    /// VMs of which nothing is left; their files go before anything new is written.
    forgotten: Vec<String>,
    /// Lines that were not understood at the start.
    pub(crate) passed_over: usize,
}

/// What is to be written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// VMs whose files go first.
    pub forgotten: Vec<String>,
    /// What is added then.
    pub lines: Vec<Line>,
}

/// A line of the file of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which VM.
    pub vm: String,
    /// Without the line's end.
    pub text: String,
}

/// What is kept in memory of one VM.
#[derive(Debug, Default)]
pub(super) struct Hour {
    notes: VecDeque<Note>,
    /// The last decision that stands in the file, or is due to.
    written: Option<Moment>,
    /// Up to when the latest note stands in the file.
    noted: Moment,
    /// When anything happened last.
    last: Moment,
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Entry {
    Decision(Box<Decision>),
    Note(Note),
}

// === impl History ===

impl History {
    /// When the last decision of a VM was made that is not to be taken in again.
    pub fn written(&self, vm: &str) -> Option<Moment> {
        self.vms.get(vm)?.written
    }

    /// Takes in the closed decisions of one VM, oldest first; those that are new are due.
    pub fn decided(&mut self, vm: &str, decisions: &[Decision]) {
        let written = self.written(vm);
        for decision in decisions.iter().filter(|d| written.is_none_or(|last| last < d.at)) {
            let entry = Entry::Decision(Box::new(decision.clone()));
            let hour = self.vms.entry(vm.to_owned()).or_default();
            (hour.written, hour.last) = (Some(decision.at), hour.last.max(end(&entry)));
            self.owe(vm, &entry);
        }
    }

    /// Takes in what the books remember of one VM, oldest first. A note grows with each same
    /// answer; it is due when it is new, and now and then while it grows.
    pub fn noted(&mut self, vm: &str, notes: Vec<Note>) {
        for note in notes {
            let hour = self.vms.entry(vm.to_owned()).or_default();
            if hour.note(&note) {
                self.owe(vm, &Entry::Note(note));
            }
        }
    }

    /// Answers of the books to a VM since a moment, oldest first.
    pub fn notes(&self, vm: &str, since: Moment) -> Vec<Note> {
        let notes = self.vms.get(vm).into_iter().flat_map(|hour| &hour.notes);
        notes.filter(|note| note.last >= since).cloned().collect()
    }

    /// Whether anything is known of a VM of this name.
    pub fn knows(&self, vm: &str) -> bool {
        self.vms.contains_key(vm)
    }

    /// Lets go of what is older than an hour, and of VMs of which nothing is left.
    pub fn forget_before(&mut self, now: Moment) {
        let old = |moment: Moment| now.since(moment) > LENGTH;
        for hour in self.vms.values_mut() {
            while hour.notes.front().is_some_and(|note| old(note.last)) {
                hour.notes.pop_front();
            }
        }
        let gone = self.vms.iter().filter(|(_, hour)| old(hour.last));
        for vm in gone.map(|(vm, _)| vm.clone()).collect::<Vec<String>>() {
            self.vms.remove(&vm);
            self.due.retain(|line| line.vm != vm);
            self.forgotten.push(vm);
        }
    }

    /// What is to be written next, if anything is. What cannot be written is given
    /// [back](History::give_back).
    pub fn take_due(&mut self) -> Option<Batch> {
        let forgotten = std::mem::take(&mut self.forgotten);
        let lines: Vec<Line> = self.due.drain(..self.due.len().min(AT_A_TIME)).collect();
        let batch = Batch { forgotten, lines };
        (batch != Batch::default()).then_some(batch)
    }

    /// These lines of a batch could not be written, and are due before all others.
    pub fn give_back(&mut self, lines: Vec<Line>) {
        for line in lines.into_iter().rev() {
            if self.knows(&line.vm) {
                self.due.push_front(line);
            }
        }
        self.drop_oldest();
    }

    fn owe(&mut self, vm: &str, entry: &Entry) {
        // Names, numbers and texts can all be written as JSON.
        let Ok(text) = serde_json::to_string(entry) else { return };
        self.due.push_back(Line { vm: vm.to_owned(), text });
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        let over = self.due.len().saturating_sub(MOST_DUE);
        self.due.drain(..over);
    }
}

// === impl Hour ===

impl Hour {
    pub(super) fn take(&mut self, entry: Entry, decisions: &mut Vec<Decision>) {
        self.last = self.last.max(end(&entry));
        match entry {
            Entry::Decision(decision) => {
                self.written = self.written.max(Some(decision.at));
                decisions.push(*decision);
            }
            Entry::Note(note) => {
                self.note(&note);
            }
        }
    }

    /// Keeps a note, or what became of one that is there. Whether it is due to be written.
    fn note(&mut self, note: &Note) -> bool {
        self.last = self.last.max(note.last);
        let known = self.notes.iter_mut().rev().find(|known| known.first == note.first);
        let due = match known {
            Some(known) => {
                known.clone_from(note);
                note.last.since(self.noted) > WRITE_AGAIN
            }
            None => {
                if self.notes.len() >= MOST {
                    self.notes.pop_front();
                }
                self.notes.push_back(note.clone());
                true
            }
        };
        if due {
            self.noted = note.last;
        }
        due
    }
}

/// When what an entry tells was over, as far as it is.
pub(super) fn end(entry: &Entry) -> Moment {
    match entry {
        Entry::Note(note) => note.last,
        Entry::Decision(decision) => match decision.outcome {
            Outcome::Open | Outcome::Observed => decision.at,
            Outcome::Reached { at }
            | Outcome::Replaced { at, .. }
            | Outcome::Interrupted { at } => at,
        },
    }
}
