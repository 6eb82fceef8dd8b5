//! What a host must not forget: freeze, pauses, ports, and which VMs it has to count.
//!
//! One small file, replaced as a whole (written beside, synced, renamed), so that a crash
//! leaves the old one or the new one. A file that cannot be understood is set aside, and the
//! host starts frozen: it may have been, and VMs that it must count may be unknown to it.

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use windlass_kit::keep::{Had, have_folder, replace};
use windlass_plugin_core::VmRecord;
use windlass_protocol::{Moment, Resources};

const FILE: &str = "state.json";
const ASIDE: &str = "state.json.broken";
const VERSION: u32 = 1;

/// What survives a restart, by the name of the VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The form of this file.
    pub version: u32,
    /// Since when the host is frozen.
    pub frozen: Option<Moment>,
    /// Until when VMs are paused.
    pub pauses: BTreeMap<String, Moment>,
    /// At which port the informant of a VM calls back.
    pub ports: BTreeMap<String, u16>,
    /// VMs whose hypervisor was not seen to be gone.
    pub vms: BTreeMap<String, Known>,
}

/// A VM that counts in the books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// How it stands.
    pub hold: Hold,
    /// Its monitor.
    pub monitor: PathBuf,
    /// Whether its vCPUs can be removed.
    pub vcpu_removal: bool,
    /// The most it was last seen to have; absent while it is not there.
    pub size: Option<Resources>,
    /// The most that it may be promised.
    pub max: Resources,
    /// What else the books know of it.
    pub record: VmRecord,
}

/// Why a VM is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// It has a file.
    Managed,
    /// A person let go of it.
    Released,
    /// Its file is gone.
    Removed,
}

/// The file, and what it says.
#[derive(Debug)]
pub struct State {
    /// Held as long as this lives: two hosts with one folder would undo each other.
    _lock: Had,
    path: PathBuf,
    kept: Kept,
    /// What is in the file may differ from this.
    dirty: bool,
}

// === impl Kept ===

impl Kept {
    /// Pauses a VM until then, or ends its pause.
    pub fn pause(&mut self, vm: &str, until: Option<Moment>) {
        match until {
            Some(until) => self.pauses.insert(vm.to_owned(), until),
            None => self.pauses.remove(vm),
        };
    }
}

// === impl State ===

impl State {
    /// Reads the file in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made or written to. A broken file is no error but a [`Problem`].
    pub fn open(folder: &Path, now: Moment) -> io::Result<(Self, Option<Problem>)> {
        let lock = have_folder(folder, "another `windlass host`")?;
        let path = folder.join(FILE);
        let (kept, problem) = match fs::read(&path) {
            Ok(text) => match understand(&text) {
                Ok(kept) => (kept, None),
                Err(why) => {
                    fs::rename(&path, folder.join(ASIDE))?;
                    (Kept { frozen: Some(now), ..Kept::default() }, Some(broken(folder, &why)))
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => (Kept::default(), None),
            Err(error) => return Err(error),
        };
        let mut state =
            Self { _lock: lock, path, kept: Kept { version: VERSION, ..kept }, dirty: true };
        state.save()?;
        Ok((state, problem))
    }

    /// What is kept.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Changes what is kept. [`State::save`] writes it.
    pub fn change(&mut self, change: impl FnOnce(&mut Kept)) {
        let before = self.kept.clone();
        change(&mut self.kept);
        self.dirty |= self.kept != before;
    }

    /// Writes what was changed since it was last written.
    ///
    /// # Errors
    /// The file keeps what it said, and the next call tries again.
    pub fn save(&mut self) -> io::Result<()> {
        if !self.dirty {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&self.kept).map_err(io::Error::other)?;
        replace(&self.path, &text)?;
        self.dirty = false;
        Ok(())
    }
}

fn understand(text: &[u8]) -> Result<Kept, String> {
    let kept: Kept = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if kept.version == VERSION {
        Ok(kept)
    } else {
        Err(format!(
            "version {} is not {VERSION}, which is the one this release knows",
            kept.version
        ))
    }
}

fn broken(folder: &Path, why: &str) -> Problem {
    Problem::without_value(
        "",
        format!(
            "not understood: {why}; it was set aside as {}. Which VMs are removed or released is \
             forgotten, so the host is frozen until `windlass thaw`",
            folder.join(ASIDE).display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::scratch::Scratch;

    const NOW: Moment = Moment::from_millis(1_000);

    #[test]
    fn what_was_kept_is_there_after_a_restart() {
        let dir = Scratch::new();
        let (mut state, problem) = State::open(dir.path(), NOW).unwrap();
        assert_eq!(problem, None);
        state.change(|kept| {
            kept.frozen = Some(NOW);
            kept.pauses.insert("db1".to_owned(), Moment::from_millis(9_000));
            kept.vms.insert("db1".to_owned(), known());
        });
        state.save().unwrap();
        let kept = state.kept().clone();
        drop(state);
        let (again, problem) = State::open(dir.path(), NOW).unwrap();
        assert_eq!((again.kept(), problem), (&kept, None));
    }

    #[test]
    fn a_folder_has_one_host() {
        let dir = Scratch::new();
        let first = State::open(dir.path(), NOW).unwrap();
        let error = State::open(dir.path(), NOW).unwrap_err().to_string();
        assert!(error.contains("another `windlass host`"), "{error}");
        drop(first);
        State::open(dir.path(), NOW).unwrap();
    }

    #[test]
    fn a_torn_write_beside_the_file_changes_nothing() {
        let dir = Scratch::new();
        let (mut state, _) = State::open(dir.path(), NOW).unwrap();
        state.change(|kept| drop(kept.vms.insert("db1".to_owned(), known())));
        state.save().unwrap();
        fs::write(dir.path().join("state.new"), "{\"version\": 1, \"froz").unwrap();
        let kept = state.kept().clone();
        drop(state);
        let (again, problem) = State::open(dir.path(), NOW).unwrap();
        assert_eq!((again.kept(), problem), (&kept, None));
    }

    #[test]
    fn a_file_that_is_not_understood_freezes_the_host_and_is_kept_aside() {
        for text in ["", "{", "null", "[]", "{\"version\":7}", "\u{0}\u{0}\u{0}"] {
            let dir = Scratch::new();
            fs::write(dir.path().join(FILE), text).unwrap();
            let (state, problem) = State::open(dir.path(), NOW).unwrap();
            assert_eq!(state.kept().frozen, Some(NOW), "{text:?}");
            assert!(problem.unwrap().limit.contains("windlass thaw"), "{text:?}");
            assert_eq!(fs::read_to_string(dir.path().join(ASIDE)).unwrap(), text);
            drop(state);
            // The next start knows what this one decided.
            let (again, problem) = State::open(dir.path(), NOW).unwrap();
            assert_eq!((again.kept().frozen, problem), (Some(NOW), None));
        }
    }

    fn known() -> Known {
        Known {
            hold: Hold::Managed,
            monitor: "/run/vms/db1/qmp.sock".into(),
            vcpu_removal: false,
            size: Some(Resources::ZERO),
            max: Resources::ZERO,
            record: VmRecord::default(),
        }
    }
}
