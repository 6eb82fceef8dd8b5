//! A folder of a guest's or a test's own, which goes with it.
//!
//! Folders of processes that were killed are removed when the next one is made. Names are
//! short: a socket's path has at most 107 bytes.

use crate::LabError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "wl-";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder that is removed with the value.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

// === impl Folder ===

impl Folder {
    /// Makes one.
    ///
    /// # Errors
    /// [`LabError::File`].
    pub fn create() -> Result<Self, LabError> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(LabError::File { path, source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now is swept later.
        let _left = fs::remove_dir_all(&self.path);
    }
}

/// Removes what killed processes have left.
fn sweep(parent: &Path) {
    for path in fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let dead = owner(&path).is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if dead {
            // Another user's, or swept by somebody else at this moment.
            let _left = fs::remove_dir_all(&path);
        }
    }
}

/// The process that made a folder, if it is one of ours.
fn owner(path: &Path) -> Option<&str> {
    let (pid, number) = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(pid) && digits(number)).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_value() {
        let folder = Folder::create().unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn only_folders_of_ours_have_an_owner() {
        assert_eq!(owner(Path::new("/tmp/wl-12-3")), Some("12"));
        for other in ["/tmp/wl-12", "/tmp/wl-x-3", "/tmp/wl-12-failed", "/tmp/12-3", "/"] {
            assert_eq!(owner(Path::new(other)), None, "{other}");
        }
    }
}
