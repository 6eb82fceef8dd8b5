//! The files of the history: one of JSON lines per VM.
//!
//! A file is appended to and turned over at a size, so that it is bounded whatever happens. A
//! line that is not understood (torn by a crash, or written by a later release) is passed
//! over; the lines around it count. Everything here may block.

use super::hour::{Batch, Entry, History, LENGTH, Line, end};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use windlass_kit::atomic_file::is_full;
use windlass_protocol::{Decision, Moment};

/// A file is turned over at this size; the one before it is kept.
pub(super) const TURN: u64 = 1 << 20;

/// Where the files are.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

/// Some lines of a batch could not be written.
#[derive(Debug)]
pub struct Unwritten {
    /// Which.
    pub lines: Vec<Line>,
    /// Why the first of them was not.
    pub error: io::Error,
}

// === impl Files ===

impl Files {
    /// Those below this folder.
    pub fn below(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("history") }
    }

    /// Reads what is left of the last hour; decisions are for the agent to recall.
    ///
    /// # Errors
    /// The folder cannot be made or read. A full disk is no error: then no history is left.
    pub fn read(&self, now: Moment) -> io::Result<(History, Vec<Decision>)> {
        let (mut history, mut decisions) = (History::default(), Vec::new());
        match fs::create_dir_all(&self.folder) {
            Err(error) if is_full(&error) => return Ok((history, decisions)),
            made => made?,
        }
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if let Some(vm) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) {
                self.load(vm, now, &mut history, &mut decisions)?;
            }
        }
        Ok((history, decisions))
    }

    /// Writes what is due. After a line that cannot be written, no later one of the same VM is.
    ///
    /// # Errors
    /// Says what was not written. Files that cannot be removed are bounded all the same.
    pub fn write(&self, batch: Batch) -> Result<(), Unwritten> {
        for vm in &batch.forgotten {
            let _ = fs::remove_file(self.file(vm));
            let _ = fs::remove_file(self.turned(vm));
        }
        let (mut lines, mut first): (Vec<Line>, Option<io::Error>) = (Vec::new(), None);
        for line in batch.lines {
            let before = lines.iter().any(|unwritten| unwritten.vm == line.vm);
            let error = if before { None } else { self.append(&line).err() };
            if before || error.is_some() {
                lines.push(line);
            }
            first = first.or(error);
        }
        first.map_or(Ok(()), |error| Err(Unwritten { lines, error }))
    }

    fn append(&self, Line { vm, text }: &Line) -> io::Result<()> {
        let (path, mut line) = (self.file(vm), format!("{text}\n"));
        let open = || OpenOptions::new().create(true).read(true).append(true).open(&path);
        let mut file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(&self.folder)?;
                open()?
            }
            opened => opened?,
        };
        let length = file.metadata()?.len();
        if length >= TURN {
            fs::rename(&path, self.turned(vm))?;
            file = open()?;
        } else if length > 0 && !ends_a_line(&mut file)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes())
    }

    fn load(
        &self,
        vm: &str,
        now: Moment,
        history: &mut History,
        decisions: &mut Vec<Decision>,
    ) -> io::Result<()> {
        let hour = history.vms.entry(vm.to_owned()).or_default();
        for path in [self.turned(vm), self.file(vm)] {
            let bytes = match read_tail(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                bytes => bytes?,
            };
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match serde_json::from_slice::<Entry>(line) {
                    Ok(entry) if now.since(end(&entry)) <= LENGTH => hour.take(entry, decisions),
                    Ok(_) => {}
                    Err(_) => history.passed_over += 1,
                }
            }
        }
        Ok(())
    }

    fn file(&self, vm: &str) -> PathBuf {
        self.folder.join(format!("{vm}.jsonl"))
    }

    fn turned(&self, vm: &str) -> PathBuf {
        self.folder.join(format!("{vm}.jsonl.old"))
    }
}

/// The end of a file that another program may have made larger than this one ever does.
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
