//! The usage log on disk: a whole meter, then what happened since, one line each.
//!
//! A line is a checksum, a blank, JSON, a line break. A line is appended with one write and is on disk
//! before the next begins, so a crash tears the last line at most, and nothing followed from
//! that one yet: it is passed over. From time to time, and at each start, the whole meter is
//! written into a new file, which then takes the place of the old one.

use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use windlass_agent_billing_core::{Meter, Origin, Record};

/// The form of the file.
const VERSION: u32 = 1;

/// No usage log of ours is as long: the largest queue and the most endpoints need a fifth of it.
const MAX_FILE: u64 = 512 << 20;

/// Bytes behind the whole meter after which it is written anew, if it is not longer itself.
const TURN: u64 = 1 << 20;

/// Why there is no usage log.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process keeps it.
    #[error("{}: another process keeps this usage log", folder.display())]
    Taken {
        /// Where.
        folder: PathBuf,
    },
    /// A later release wrote it.
    #[error("{}: written by a later release, in form {version}; this one reads up to {VERSION}", path.display())]
    Later {
        /// Which file.
        path: PathBuf,
        /// Its form.
        version: u32,
    },
    /// It is damaged, and so was one before.
    #[error("{}: damaged, and {} is there already: move both away", path.display(), aside.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where it would be put aside.
        aside: PathBuf,
    },
    /// The system refused.
    #[error("{}: cannot be used", path.display())]
    Failed {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What was found at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No usage log.
    Nothing,
    /// One, with this many bytes of a last line that was not finished.
    Whole { torn: usize },
    /// One with lines in the middle that cannot be read. It was put aside.
    Damaged,
}

/// The file, and how long it is.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    file: File,
    /// Bytes of the whole meter.
    whole: u64,
    /// Bytes of the file.
    length: u64,
    /// Held until the process ends, however it does.
    _lock: File,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head<M> {
    version: u32,
    meter: M,
}

/// The first line's form, which every release can read.
#[derive(Deserialize)]
struct HeadForm {
    version: u32,
}

/// What the lines of a file come to.
enum Content {
    Meter { meter: Box<Meter>, torn: usize },
    Later(u32),
    Damaged,
}

// === impl Journal ===

impl Journal {
    /// Takes the usage log of a folder, which is made if need be.
    pub(crate) fn open(folder: &Path, origin: Origin) -> Result<(Self, Meter, Found), OpenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Failed { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let lock = lock(folder)?;
        let path = path(folder);
        let (meter, found) = match read(&path).map_err(failed(&path))? {
            None => (Meter::new(origin), Found::Nothing),
            Some(bytes) => match content(&bytes) {
                Content::Meter { meter, torn } => (*meter, Found::Whole { torn }),
                Content::Later(version) => return Err(OpenError::Later { path, version }),
                Content::Damaged => {
                    put_aside(&path)?;
                    (Meter::new(origin), Found::Damaged)
                }
            },
        };
        let (file, whole) = write_whole(folder, &meter).map_err(failed(&path))?;
        let folder = folder.to_owned();
        Ok((Self { folder, file, whole, length: whole, _lock: lock }, meter, found))
    }

    /// What happened is on disk when this returns without an error. After an error only
    /// [`Journal::rewrite`] may follow.
    pub(crate) fn append(&mut self, records: &[Record]) -> io::Result<()> {
        let line = line(&records)?;
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Whether the whole meter should be written anew.
    pub(crate) fn is_long(&self) -> bool {
        self.length - self.whole > self.whole.max(TURN)
    }

    /// Writes the whole meter in place of all that was written before.
    pub(crate) fn rewrite(&mut self, meter: &Meter) -> io::Result<()> {
        (self.file, self.whole) = write_whole(&self.folder, meter)?;
        self.length = self.whole;
        Ok(())
    }

    /// Has the next append meet a full disk.
    #[cfg(test)]
    pub(crate) fn fill(&mut self) {
        self.file = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    }

    /// Bytes of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("usage.log")
}

fn lock(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join("lock");
    let failed = |source| OpenError::Failed { path: path.clone(), source };
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Taken { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!(
            "longer than {MAX_FILE} bytes, the most that is written"
        )));
    }
    Ok(Some(bytes))
}

fn content(bytes: &[u8]) -> Content {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let Some(head) = lines.next().and_then(checked) else { return Content::Damaged };
    match serde_json::from_slice::<HeadForm>(head) {
        Ok(form) if form.version > VERSION => return Content::Later(form.version),
        Ok(_) => {}
        Err(_) => return Content::Damaged,
    }
    let Ok(Head { mut meter, .. }) = serde_json::from_slice::<Head<Meter>>(head) else {
        return Content::Damaged;
    };
    while let Some(line) = lines.next() {
        match checked(line) {
            Some(json) => match serde_json::from_slice::<Vec<Record>>(json) {
                Ok(records) => records.iter().for_each(|record| meter.apply(record)),
                Err(_) => return Content::Damaged,
            },
            // Torn, if nothing that is whole follows; nothing came of it.
            None if lines.clone().all(|later| checked(later).is_none()) => {
                let torn = line.len() + lines.map(<[u8]>::len).sum::<usize>();
                return Content::Meter { meter: Box::new(meter), torn };
            }
            None => return Content::Damaged,
        }
    }
    Content::Meter { meter: Box::new(meter), torn: 0 }
}

/// The first one that is damaged is kept for a person to look at.
fn put_aside(path: &Path) -> Result<(), OpenError> {
    let aside = path.with_extension("log.damaged");
    if aside.exists() {
        return Err(OpenError::Damaged { path: path.to_owned(), aside });
    }
    fs::rename(path, &aside).map_err(|source| OpenError::Failed { path: aside, source })
}

fn write_whole(folder: &Path, meter: &Meter) -> io::Result<(File, u64)> {
    let (path, beside) = (path(folder), folder.join("usage.log.new"));
    let line = line(&Head { version: VERSION, meter })?;
    let mut file = File::create(&beside)?;
    file.write_all(&line)?;
    file.sync_all()?;
    fs::rename(&beside, &path)?;
    // The new name is on disk, too.
    File::open(folder)?.sync_all()?;
    Ok((file, line.len() as u64))
}

fn line(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(content).map_err(io::Error::other)?;
    let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

/// The JSON of a line, if it is the one that was written.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.strip_suffix(b"\n")?.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (sum == crc32fast::hash(json)).then_some(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_agent_billing_core::Source;
    use windlass_protocol::{Moment, Sequence};

    #[test]
    fn whatever_byte_is_wrong_nothing_is_read_that_was_not_written() {
        let (bytes, states) = written();
        for at in 0..bytes.len() {
            for wrong in [bytes[at] ^ 1, b'\n', 0] {
                let mut damaged = bytes.clone();
                damaged[at] = wrong;
                if let Content::Meter { meter, .. } = content(&damaged) {
                    assert!(states.contains(&meter), "byte {at} is {wrong}");
                }
            }
            match content(&bytes[..at]) {
                Content::Meter { meter, .. } => assert!(states.contains(&meter), "{at} bytes"),
                Content::Damaged => assert!(at <= bytes.iter().position(|b| *b == b'\n').unwrap()),
                Content::Later(version) => panic!("form {version} of {at} bytes"),
            }
        }
    }

    /// A usage log of three lines, and what it comes to after each.
    fn written() -> (Vec<u8>, Vec<Meter>) {
        let source = Source::try_from("node-1".to_owned()).unwrap();
        let mut meter = Meter::new(Origin { source, since: Moment::from_millis(1) });
        let mut bytes = line(&Head { version: VERSION, meter: &meter }).unwrap();
        let mut states = vec![meter.clone()];
        for at in [2, 3] {
            let records = [
                Record::Seen { at: Moment::from_millis(at), span: 0, vms: vec![], forget: vec![] },
                Record::Delivered { through: Sequence::ZERO },
            ];
            records.iter().for_each(|record| meter.apply(record));
            bytes.extend(line(&records).unwrap());
            states.push(meter.clone());
        }
        (bytes, states)
    }
}
