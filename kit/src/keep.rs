//! What a process keeps on disk for its next start.
//!
//! A file is replaced as a whole (written beside, synced, renamed), so that a crash leaves the old
//! one or the new one. A folder has one process: two would undo each other.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

const LOCK: &str = "lock";

/// Makes a folder if it is not there, and has it for as long as what is returned lives. `owner` is
/// whom an error names, as `another agent`.
///
/// # Errors
/// The folder cannot be made or written to, or another process has it.
pub fn have_folder(folder: &Path, owner: &str) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let lock = File::create(folder.join(LOCK))?;
    lock.try_lock().map_err(|_| {
        io::Error::new(ErrorKind::ResourceBusy, format!("{owner} has this state_dir"))
    })?;
    Ok(lock)
}

/// Replaces a file as a whole.
///
/// # Errors
/// The file is what it was, or what it should be.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
