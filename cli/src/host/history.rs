//! What happened to each VM in the last hour, kept over a restart.
//!
//! The agent knows the decisions and forgets them with its process; they are written down
//! here, beside the books' answers, and read back at the next start. One file of JSON lines
//! per VM, appended to and turned over at a size, so that it is bounded whatever happens. A
//! line that is not understood (torn by a crash, or written by a later release) is passed
//! over; the lines around it count. If the disk is full, the hour is still known as long as
//! the process lives.

use crate::explain::Note;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_protocol::{Decision, Moment, Outcome};

/// How far back is looked.
pub const LENGTH: Duration = Duration::from_secs(3600);

/// Notes of one VM that are kept: they change with each grant to another VM.
const MOST: usize = 500;

/// A note that grows is written again after this: a restart may then cost its last minutes.
const WRITE_AGAIN: Duration = Duration::from_secs(300);

/// A file is turned over at this size; the one before it is kept.
const TURN: u64 = 1 << 20;

/// The last hour, by VM.
#[derive(Debug)]
pub struct History {
    folder: PathBuf,
    vms: BTreeMap<String, Hour>,
    /// Lines that were not understood at the start.
    passed_over: usize,
}

/// What is kept in memory of one VM.
#[derive(Debug, Default)]
struct Hour {
    notes: VecDeque<Note>,
    /// The last decision that stands in the file.
    written: Option<Moment>,
    /// Up to when the latest note stands in the file.
    noted: Moment,
    /// When anything happened last.
    last: Moment,
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Entry {
    Decision(Box<Decision>),
    Note(Note),
}

// === impl History ===

impl History {
    /// Reads what is left of the last hour; decisions are for the agent to recall.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(state_dir: &Path, now: Moment) -> io::Result<(Self, Vec<Decision>)> {
        let folder = state_dir.join("history");
        fs::create_dir_all(&folder)?;
        let mut history = Self { folder, vms: BTreeMap::new(), passed_over: 0 };
        let mut decisions = Vec::new();
        for entry in fs::read_dir(&history.folder)? {
            let name = entry?.file_name();
            if let Some(vm) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) {
                let hour = history.load(vm, now, &mut decisions)?;
                history.vms.insert(vm.to_owned(), hour);
            }
        }
        Ok((history, decisions))
    }

    /// How many lines were not understood at the start.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// Writes those of these closed decisions of one VM, oldest first, that were not written yet.
    ///
    /// # Errors
    /// They could not be written; the next call tries again.
    pub fn decided(&mut self, vm: &str, decisions: &[Decision]) -> io::Result<()> {
        let written = self.vms.get(vm).and_then(|hour| hour.written);
        for decision in decisions.iter().filter(|d| written.is_none_or(|last| last < d.at)) {
            let entry = Entry::Decision(Box::new(decision.clone()));
            self.append(vm, &entry)?;
            let hour = self.vms.entry(vm.to_owned()).or_default();
            (hour.written, hour.last) = (Some(decision.at), hour.last.max(end(&entry)));
        }
        Ok(())
    }

    /// Takes in what the books remember of one VM, oldest first. A note grows with each same
    /// answer; it is written when it is new, and now and then while it grows.
    ///
    /// # Errors
    /// It is known, and could not be written.
    pub fn noted(&mut self, vm: &str, notes: Vec<Note>) -> io::Result<()> {
        let mut due = Vec::new();
        for note in notes {
            let hour = self.vms.entry(vm.to_owned()).or_default();
            if hour.note(&note) {
                due.push(note);
            }
        }
        due.into_iter().try_for_each(|note| self.append(vm, &Entry::Note(note)))
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

    /// Lets go of what is older than an hour, and of the files of VMs of which nothing is left.
    pub fn forget_before(&mut self, now: Moment) {
        let old = |moment: Moment| now.since(moment) > LENGTH;
        for hour in self.vms.values_mut() {
            while hour.notes.front().is_some_and(|note| old(note.last)) {
                hour.notes.pop_front();
            }
        }
        let gone = self.vms.iter().filter(|(_, hour)| old(hour.last));
        let gone: Vec<String> = gone.map(|(vm, _)| vm.clone()).collect();
        for vm in gone {
            self.vms.remove(&vm);
            // What cannot be removed is bounded all the same.
            let _ = fs::remove_file(self.file(&vm));
            let _ = fs::remove_file(self.turned(&vm));
        }
    }

    fn append(&self, vm: &str, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_string(entry).map_err(io::Error::other)?;
        line.push('\n');
        let path = self.file(vm);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        let length = file.metadata()?.len();
        if length >= TURN {
            fs::rename(&path, self.turned(vm))?;
            file = OpenOptions::new().create(true).append(true).open(&path)?;
        } else if length > 0 && !ends_a_line(&mut file)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes())
    }

    fn load(&mut self, vm: &str, now: Moment, decisions: &mut Vec<Decision>) -> io::Result<Hour> {
        let mut hour = Hour::default();
        for path in [self.turned(vm), self.file(vm)] {
            let bytes = match read_tail(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match serde_json::from_slice::<Entry>(line) {
                    Ok(entry) if now.since(end(&entry)) <= LENGTH => {
                        hour.take(entry, decisions);
                    }
                    Ok(_) => {}
                    Err(_) => self.passed_over += 1,
                }
            }
        }
        Ok(hour)
    }

    fn file(&self, vm: &str) -> PathBuf {
        self.folder.join(format!("{vm}.jsonl"))
    }

    fn turned(&self, vm: &str) -> PathBuf {
        self.folder.join(format!("{vm}.jsonl.old"))
    }
}

// === impl Hour ===

impl Hour {
    fn take(&mut self, entry: Entry, decisions: &mut Vec<Decision>) {
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
fn end(entry: &Entry) -> Moment {
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

/// The end of a file that somebody else may have made larger than we ever do.
fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(2 * TURN);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(2 * TURN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests;
