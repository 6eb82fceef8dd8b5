//! What a process keeps on disk for its next start.
//!
//! A file is replaced as a whole (written beside, synced, renamed), so that a crash leaves the old
//! one or the new one. A folder has one process: two would undo each other.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

const LOCK: &str = "lock";

/// A folder that this process has, for as long as this lives.
#[derive(Debug)]
pub struct Had {
    /// The locks: of the folder itself, and of a file in it.
    _locks: Vec<File>,
}

/// Makes a folder if it is not there, and has it for as long as what is returned lives. `owner` is
/// whom an error names, as `another agent`. A full disk keeps no process from its folder.
///
/// # Errors
/// The folder cannot be made or written to, or another process has it.
pub fn have_folder(folder: &Path, owner: &str) -> io::Result<Had> {
    fs::create_dir_all(folder)?;
    // Where there is no room for a lock file, the folder's own lock is the only one; a file
    // system that knows no locks of folders leaves the file's.
    let itself = File::open(folder)?;
    let mut locks = vec![];
    match itself.try_lock() {
        Ok(()) => locks.push(itself),
        Err(TryLockError::WouldBlock) => return Err(busy(owner)),
        Err(TryLockError::Error(_)) => {}
    }
    match File::create(folder.join(LOCK)) {
        Ok(lock) => {
            lock.try_lock().map_err(|_| busy(owner))?;
            locks.push(lock);
        }
        Err(error) if is_full(&error) && !locks.is_empty() => {}
        Err(error) => return Err(error),
    }
    Ok(Had { _locks: locks })
}

/// Whether this says that there is no room left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn busy(owner: &str) -> io::Error {
    io::Error::new(ErrorKind::ResourceBusy, format!("{owner} has this state_dir"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_process_and_a_file_its_last_text() {
        let own = windlass_testkit::Folder::create().unwrap();
        let folder = own.at("new");
        let had = have_folder(&folder, "another agent").unwrap();
        let busy = have_folder(&folder, "another agent").unwrap_err();
        assert_eq!(busy.to_string(), "another agent has this state_dir");
        for text in ["a long one", "short"] {
            replace(&folder.join("state.json"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(folder.join("state.json")).unwrap(), text);
        }
        assert!(!folder.join("state.new").exists());
        drop(had);
        drop(have_folder(&folder, "another agent").unwrap());
        // What keeps a lock from being made is said, unless it is that there is no room.
        fs::remove_file(folder.join(LOCK)).unwrap();
        fs::create_dir(folder.join(LOCK)).unwrap();
        assert_eq!(have_folder(&folder, "").unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn a_disk_and_a_quota_can_be_full() {
        for (kind, full) in [
            (ErrorKind::StorageFull, true),
            (ErrorKind::QuotaExceeded, true),
            (ErrorKind::NotFound, false),
        ] {
            assert_eq!(is_full(&kind.into()), full, "{kind}");
        }
    }
}
