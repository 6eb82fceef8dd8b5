//! A folder of a guest's or a test's own, which goes with it.
//!
//! A process that makes its first folder removes those of processes that were killed. Names are
//! short: a socket's path has at most 107 bytes.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

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
    /// The file system's, with the folder's path.
    pub fn create() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let parent = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&parent));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let said =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::create_dir(&path).map_err(said)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of this name in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Puts a file in place at once, so that a reader sees all of it or nothing; and where it is.
    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let (beside, path) = (self.at(".beside"), self.at(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&beside, text).unwrap();
        fs::rename(beside, &path).unwrap();
        path
    }

    /// The text of a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
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
            // Another user's, or swept by another test at this moment.
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
        assert_eq!(fs::read_to_string(folder.put("a/file", "x")).unwrap(), folder.read("a/file"));
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
