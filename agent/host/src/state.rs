//! What a host must not forget: freeze, pauses, who ordered what, ports, and which VMs it has to
//! count.
//!
//! One small file, replaced as a whole (written beside, synced, renamed), so that a crash
//! leaves the old one or the new one. A file that cannot be understood is set aside, and the
//! host starts frozen: it may have been, and VMs that it must count may be unknown to it.
//! [`State`] is a plain value that knows which of its changes were written; [`StateFile`] writes, and may block.

mod kept;

pub use kept::{Kept, Known, put, shrink};

use crate::problem::Problem;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tracing::warn;
use windlass_kit::atomic_file::{FolderLock, is_full, lock_folder, replace};
use windlass_protocol::Moment;

const FILE: &str = "state.json";
const ASIDE: &str = "state.json.broken";
const VERSION: u32 = 1;

/// What `windlass-agent` kept before it kept a state: taken over once.
const OLD_PORTS: &str = "ports.json";
const OLD_PORTS_ASIDE: &str = "ports.json.broken";

/// What is kept, and how much of it stands in the file.
#[derive(Debug, Default)]
pub struct State {
    kept: Kept,
    /// Grows with each change.
    changes: u64,
    /// Up to which change the file has it. `None`: what is in the file may differ.
    written: Option<u64>,
}

/// The file.
#[derive(Debug)]
pub struct StateFile {
    /// Held as long as this lives: two hosts with one folder would undo each other.
    _lock: FolderLock,
    path: PathBuf,
}

// === impl State ===

impl State {
    /// What was read at the start, and is to be written as this release writes it.
    pub fn of(kept: Kept) -> Self {
        Self { kept: Kept { version: VERSION, ..kept }, ..Self::default() }
    }

    /// What is kept.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Changes what is kept; `change` says whether anything is another than before. To compare all that
    /// is kept would cost each VM a look at every other.
    pub fn change(&mut self, change: impl FnOnce(&mut Kept) -> bool) {
        let before = cfg!(debug_assertions).then(|| self.kept.clone());
        let changed = change(&mut self.kept);
        debug_assert!(
            before.is_none_or(|before| changed == (before != self.kept)),
            "a change of the state does not say whether it changed anything ({changed})"
        );
        if changed {
            self.changes += 1;
        }
    }

    /// The number of the last change.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether this change stands in the file, with all before it.
    pub fn is_written(&self, change: u64) -> bool {
        self.written.is_some_and(|written| written >= change)
    }

    /// What is to be written, unless the file has it.
    ///
    /// # Errors
    /// It cannot be put into words.
    pub fn unwritten(&self) -> Option<io::Result<Vec<u8>>> {
        let text = || serde_json::to_vec_pretty(&self.kept).map_err(io::Error::other);
        (!self.is_written(self.changes)).then(text)
    }

    /// The file has this change, and all before it.
    pub fn wrote(&mut self, change: u64) {
        self.written = self.written.max(Some(change));
    }
}

// === impl StateFile ===

impl StateFile {
    /// Reads the file in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made, read or written to. A broken file is no error but a [`Problem`];
    /// nor is a full disk, as long as it has what was kept. `owner` is what else may have the folder.
    pub fn open(
        owner: &str,
        folder: &Path,
        now: Moment,
    ) -> io::Result<(Self, State, Option<Problem>)> {
        let lock = lock_folder(folder, owner)?;
        let file = Self { _lock: lock, path: folder.join(FILE) };
        let aside = folder.join(ASIDE);
        let (kept, problem) = match fs::read(&file.path) {
            Ok(text) => match understand(&text) {
                Ok(kept) => (kept, None),
                Err(why) => {
                    fs::rename(&file.path, &aside)?;
                    (Kept { frozen: Some(now), ..Kept::default() }, Some(broken(&aside, &why)))
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (Kept { ports: old_ports(folder)?, ..Kept::default() }, None)
            }
            Err(error) => return Err(error),
        };
        let mut state = State::of(kept);
        let written = state.unwritten().map_or(Ok(()), |text| file.save(&text?));
        match written {
            Ok(()) => {
                state.wrote(state.changes());
                // The state has them from here on; a file that stays is passed over.
                let _ = fs::remove_file(folder.join(OLD_PORTS));
            }
            Err(error) if is_full(&error) && problem.is_none() => {}
            Err(error) => {
                if problem.is_some() {
                    // The next start has to find out the same, and not that nothing was kept.
                    fs::rename(&aside, &file.path)?;
                }
                return Err(error);
            }
        }
        Ok((file, state, problem))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// The file keeps what it said, or says what it should.
    pub fn save(&self, text: &[u8]) -> io::Result<()> {
        replace(&self.path, text)
    }
}

/// At which port the informant of each VM calls back. A file that is not understood is set aside:
/// informants whose port has changed are registered with anew, and nothing else is lost.
fn old_ports(folder: &Path) -> io::Result<BTreeMap<String, u16>> {
    let path = folder.join(OLD_PORTS);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        read => read?,
    };
    serde_json::from_slice(&text).or_else(|_| {
        let aside = folder.join(OLD_PORTS_ASIDE);
        fs::rename(&path, &aside)?;
        warn!(aside = %aside.display(), "ports.json not understood, and set aside");
        Ok(BTreeMap::new())
    })
}

fn understand(text: &[u8]) -> Result<Kept, String> {
    let kept: Kept = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match kept.version {
        VERSION => Ok(kept),
        other => {
            Err(format!("version {other} is not {VERSION}, which is the one this release knows"))
        }
    }
}

fn broken(aside: &Path, why: &str) -> Problem {
    let limit = format!(
        "not understood: {why}; it was set aside as {}. Which VMs are removed or released is \
         forgotten, so the host is frozen until `windlass thaw`",
        aside.display()
    );
    Problem::without_value("", limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use windlass_agent::Lifecycle;
    use windlass_protocol::{Resources, VmRecord};
    use windlass_testkit::Folder;

    const NOW: Moment = Moment::from_millis(1_000);
    const OWNER: &str = "another `windlass host`";

    #[test]
    fn what_was_kept_is_there_after_a_restart() {
        let dir = Folder::create().unwrap();
        let (file, mut state, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        assert_eq!(problem, None);
        state.change(|kept| {
            kept.frozen = Some(NOW);
            kept.pause("db1", Some(Moment::from_millis(9_000)));
            put(&mut kept.vms, "db1", known())
        });
        save(&file, &mut state);
        let kept = state.kept().clone();
        drop(file);
        let (_file, again, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        assert_eq!((again.kept(), problem), (&kept, None));
    }

    #[test]
    fn a_folder_has_one_host() {
        let dir = Folder::create().unwrap();
        let first = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        let error = StateFile::open(OWNER, dir.path(), NOW).unwrap_err().to_string();
        assert!(error.contains("another `windlass host`"), "{error}");
        drop(first);
        StateFile::open(OWNER, dir.path(), NOW).unwrap();
    }

    #[test]
    fn a_torn_write_beside_the_file_changes_nothing() {
        let dir = Folder::create().unwrap();
        let (file, mut state, _) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        state.change(|kept| put(&mut kept.vms, "db1", known()));
        save(&file, &mut state);
        fs::write(dir.path().join("state.new"), "{\"version\": 1, \"froz").unwrap();
        let kept = state.kept().clone();
        drop(file);
        let (_file, again, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        assert_eq!((again.kept(), problem), (&kept, None));
    }

    #[test]
    fn a_file_that_is_not_understood_freezes_the_host_and_is_kept_aside() {
        for text in ["", "{", "null", "[]", "{\"version\":7}", "\u{0}\u{0}\u{0}"] {
            let dir = Folder::create().unwrap();
            fs::write(dir.path().join(FILE), text).unwrap();
            let (file, state, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
            assert_eq!(state.kept().frozen, Some(NOW), "{text:?}");
            assert!(problem.unwrap().limit.contains("windlass thaw"), "{text:?}");
            assert_eq!(fs::read_to_string(dir.path().join(ASIDE)).unwrap(), text);
            drop(file);
            // The next start knows what this one decided.
            let (_file, again, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
            assert_eq!((again.kept().frozen, problem), (Some(NOW), None));
        }
    }

    /// It may be there, and say what must not be forgotten.
    #[test]
    fn a_file_that_cannot_be_read_is_not_replaced() {
        let dir = Folder::create().unwrap();
        let path = dir.path().join(FILE);
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(StateFile::open(OWNER, dir.path(), NOW).is_err());
        assert!(path.is_symlink());
    }

    #[test]
    fn a_full_disk_keeps_what_was_kept_and_the_host_starts() {
        let dir = Folder::create().unwrap();
        let (file, mut state, _) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        state.change(|kept| put(&mut kept.vms, "db1", known()));
        save(&file, &mut state);
        drop(file);
        let full = dir.path().join("state.new");
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        let (file, again, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        assert_eq!((again.kept(), problem), (state.kept(), None));
        assert!(again.unwritten().is_some(), "it is tried again");
        drop(file);
        // But a start that found a broken file is not forgotten by the next.
        fs::write(dir.path().join(FILE), "{").unwrap();
        for _ in 0..2 {
            let error = StateFile::open(OWNER, dir.path(), NOW).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
        fs::remove_file(full).unwrap();
        let (_file, again, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        assert!(again.kept().frozen == Some(NOW) && problem.is_some());
    }

    #[test]
    fn the_ports_of_an_earlier_agent_are_taken_over_once() {
        let dir = Folder::create().unwrap();
        let old = dir.path().join("ports.json");
        fs::write(&old, "{\"a\":10310,\"b\":10311}").unwrap();
        let both = BTreeMap::from([("a".to_owned(), 10_310), ("b".to_owned(), 10_311)]);
        for _ in 0..2 {
            let (_file, state, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
            assert_eq!((&state.kept().ports, problem), (&both, None));
            assert!(!old.exists());
        }
        // Beside a state it says nothing.
        fs::write(&old, "{\"a\":7}").unwrap();
        let (_file, state, _) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
        assert_eq!(state.kept().ports, both);
    }

    #[test]
    fn ports_of_an_earlier_agent_that_are_not_understood_are_set_aside() {
        for text in ["", "[]", "{\"a\":70000}", "{\"a\":1"] {
            let dir = Folder::create().unwrap();
            fs::write(dir.path().join("ports.json"), text).unwrap();
            let (_file, state, problem) = StateFile::open(OWNER, dir.path(), NOW).unwrap();
            assert_eq!(
                (state.kept(), problem),
                (State::of(Kept::default()).kept(), None),
                "{text}"
            );
            let aside = fs::read_to_string(dir.path().join("ports.json.broken")).unwrap();
            assert_eq!(aside, text);
        }
    }

    #[test]
    fn a_change_is_written_once_it_is_said_to_be() {
        let mut state = State::of(Kept::default());
        state.wrote(state.changes());
        state.change(|kept| kept.freeze(None));
        assert!(state.unwritten().is_none(), "nothing changed");
        state.change(|kept| kept.freeze(Some(NOW)));
        let first = state.changes();
        state.change(|kept| kept.freeze(None));
        state.wrote(first);
        assert!(state.is_written(first) && !state.is_written(state.changes()));
        assert!(state.unwritten().is_some(), "it changed while it was written");
        state.wrote(state.changes());
        state.wrote(first);
        assert!(state.unwritten().is_none());
    }

    fn save(file: &StateFile, state: &mut State) {
        file.save(&state.unwritten().unwrap().unwrap()).unwrap();
        state.wrote(state.changes());
    }

    fn known() -> Known {
        Known {
            standing: Lifecycle::Managed,
            monitor: "/run/vms/db1/qmp.sock".into(),
            vcpu_removal: false,
            cpu_limit: None,
            size: Some(Resources::ZERO),
            max: Resources::ZERO,
            record: VmRecord::default(),
        }
    }
}
