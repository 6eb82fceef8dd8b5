//! What the controller reads and writes, each apart from the controller, which goes on meanwhile.
//!
//! The controller knows a [`Disk`] by what comes of each call, however late, and so a test can be one:
//! a disk that is slow, full or silent.

use crate::history::{Batch, Files, History, Unwritten};
use crate::problem::Problem;
use crate::state::{State, StateFile};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_kit::blocking::{Work, run_blocking};
use windlass_kit::config::{Unread, read_text};
use windlass_protocol::{Decision, Moment};
use windlass_vm_files::folder::{self, Look};
use windlass_vm_files::watch::Watch;

/// Why nothing came of a call, when it takes too long.
pub(crate) const SILENT: &str = "the disk does not answer";

/// What the controller reads and writes. No call waits: what it returns does.
pub trait Disk: Send + Sync {
    /// The VM files.
    fn look(&self) -> Work<Look>;

    /// Has the kernel give notices of the VM files from here on.
    fn watch(&self) -> Work<io::Result<Watch>>;

    /// The text of the configuration.
    fn config(&self) -> Work<Result<String, Unread>>;

    /// Replaces state.json.
    fn save(&self, text: Vec<u8>) -> Work<io::Result<()>>;

    /// Writes the next lines of the history.
    fn write(&self, batch: Batch) -> Work<Result<(), Unwritten>>;
}

/// The machine's disk.
#[derive(Clone, Debug)]
pub struct MachineDisk {
    vms_dir: PathBuf,
    config: PathBuf,
    state: Arc<StateFile>,
    history: Files,
}

/// What was kept over a restart.
#[derive(Debug, Default)]
pub struct Recalled {
    /// What the host must not forget.
    pub state: State,
    /// The last hour.
    pub history: History,
    /// What the agent decided in it.
    pub decisions: Vec<Decision>,
    /// Why the state is not what was kept, if it is not.
    pub problem: Option<Problem>,
}

// === impl MachineDisk ===

impl MachineDisk {
    /// Takes the folder of the state, and reads what is in it. May block.
    ///
    /// # Errors
    /// The folder cannot be had or read. `owner` is what may have it: `another windlass host`.
    pub fn open(
        owner: &str,
        state_dir: &Path,
        vms_dir: PathBuf,
        config: PathBuf,
        now: Moment,
    ) -> io::Result<(Self, Recalled)> {
        let (state_file, state, problem) = StateFile::open(owner, state_dir, now)?;
        let files = Files::below(state_dir);
        let (history, decisions) = files.read(now)?;
        let disk = Self { vms_dir, config, state: Arc::new(state_file), history: files };
        Ok((disk, Recalled { state, history, decisions, problem }))
    }
}

impl Disk for MachineDisk {
    fn look(&self) -> Work<Look> {
        let folder = self.vms_dir.clone();
        Box::pin(async move {
            let looked = run_blocking(move || folder::look(&folder)).await;
            looked.unwrap_or_else(|error| Err(unread(&error)))
        })
    }

    fn watch(&self) -> Work<io::Result<Watch>> {
        let folder = self.vms_dir.clone();
        Box::pin(async move { run_blocking(move || Watch::begin(&folder)).await? })
    }

    fn config(&self) -> Work<Result<String, Unread>> {
        let path = self.config.clone();
        Box::pin(async move {
            let read = run_blocking(move || read_text(&path)).await;
            read.unwrap_or_else(|error| Err(Unread::Failed(error)))
        })
    }

    fn save(&self, text: Vec<u8>) -> Work<io::Result<()>> {
        let file = self.state.clone();
        Box::pin(async move { run_blocking(move || file.save(&text)).await? })
    }

    fn write(&self, batch: Batch) -> Work<Result<(), Unwritten>> {
        let (files, lines) = (self.history.clone(), batch.lines.clone());
        Box::pin(async move {
            let written = run_blocking(move || files.write(batch)).await;
            written.unwrap_or_else(|error| Err(Unwritten { lines, error }))
        })
    }
}

pub(crate) fn unread(why: &dyn Display) -> Problem {
    Problem::without_value("", format!("cannot be read: {why}"))
}
