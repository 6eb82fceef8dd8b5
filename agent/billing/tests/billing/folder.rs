//! A folder for one test, removed with the value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A path at which there is nothing yet.
pub(crate) struct Folder(PathBuf);

// === impl Folder ===

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-billing-{}-{nth}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is in the machine's folder for that.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
