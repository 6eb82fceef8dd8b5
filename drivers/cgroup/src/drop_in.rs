//! The files in which systemd keeps what `set-property --runtime` sets.
//!
//! They outlive a transient unit, and come before the settings with which the next unit of that name is
//! started. So they are put back as they were found, too.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The files for what is set here.
const NAMES: [&str; 2] = ["50-CPUQuota.conf", "50-CPUQuotaPeriodSec.conf"];

/// One of them, as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DropIn {
    path: PathBuf,
    /// `None`: there was none.
    text: Option<String>,
}

// === impl DropIn ===

impl DropIn {
    /// Those of a unit.
    pub(crate) fn all_of(root: &Path, unit: &str) -> io::Result<Vec<Self>> {
        let folder = root.join("run/systemd/system.control").join(format!("{unit}.d"));
        let read = |name| {
            let path = folder.join(name);
            match fs::read_to_string(&path) {
                Ok(text) => Ok(Self { path, text: Some(text) }),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self { path, text: None }),
                Err(error) => Err(error),
            }
        };
        NAMES.into_iter().map(read).collect()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it as it was found.
    pub(crate) fn put_back(&self) -> io::Result<()> {
        let Some(text) = &self.text else {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => {
                    // systemd makes the folder for its first file; others may be in it.
                    let _kept = self.path.parent().map(fs::remove_dir);
                    Ok(())
                }
            };
        };
        if fs::read_to_string(&self.path).is_ok_and(|stands| stands == *text) {
            return Ok(());
        }
        fs::write(&self.path, text)
    }
}
