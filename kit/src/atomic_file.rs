//! Files that a process writes for its next start: replaced atomically, in a folder that it locks.
//!
//! A file is replaced as a whole (written under another name, synced, renamed), so that a crash leaves the
//! old file or the new one. Only one process uses a folder: two would undo each other's changes.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

const LOCK: &str = "lock";

/// The lock of a folder; dropping it unlocks the folder.
#[derive(Debug)]
pub struct FolderLock {
    /// The locks of the folder itself and of a file in it.
    _locks: Vec<File>,
}

/// Creates and locks a folder. If it is locked, the error names `owner`, such as `another agent`. The lock
/// works even if the disk is full.
///
/// # Errors
/// The folder cannot be created or written to, or another process has locked it.
pub fn lock_folder(folder: &Path, owner: &str) -> io::Result<FolderLock> {
    fs::create_dir_all(folder)?;
    // A full disk leaves only the folder's own lock; a file system without folder locks leaves only the
    // file's lock.
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
    Ok(FolderLock { _locks: locks })
}

/// Whether this error means that the disk or the quota is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn busy(owner: &str) -> io::Error {
    io::Error::new(ErrorKind::ResourceBusy, format!("{owner} has this state_dir"))
}

/// Replaces a file as a whole.
///
/// # Errors
/// The file has its old or its new content.
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
        let lock = lock_folder(&folder, "another agent").unwrap();
        let busy = lock_folder(&folder, "another agent").unwrap_err();
        assert_eq!(busy.to_string(), "another agent has this state_dir");
        for text in ["a long one", "short"] {
            replace(&folder.join("state.json"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(folder.join("state.json")).unwrap(), text);
        }
        assert!(!folder.join("state.new").exists());
        drop(lock);
        drop(lock_folder(&folder, "another agent").unwrap());
        // What keeps a lock from being made is said, unless it is that there is no room.
        fs::remove_file(folder.join(LOCK)).unwrap();
        fs::create_dir(folder.join(LOCK)).unwrap();
        assert_eq!(lock_folder(&folder, "").unwrap_err().kind(), ErrorKind::IsADirectory);
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
