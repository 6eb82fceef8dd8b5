//! What an agent must not forget: at which port each informant calls back.
//!
//! One small file, replaced as a whole, so that a crash leaves the old one or the new one. A file
//! that cannot be understood is set aside: informants whose port has changed are registered with
//! anew, nothing else is lost.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tracing::warn;
use windlass_kit::atomic_file::{FolderLock, lock_folder, replace};
use windlass_protocol::VmName;

const FILE: &str = "ports.json";
const ASIDE: &str = "ports.json.broken";

/// The port of each VM's informant.
pub type Ports = BTreeMap<VmName, u16>;

/// The folder, and what is in it.
#[derive(Debug)]
pub struct State {
    /// Held as long as this lives: two agents with one folder would undo each other.
    _lock: FolderLock,
    path: PathBuf,
    kept: Ports,
}

/// The file alone.
#[derive(Clone, Debug)]
pub struct StateFile(PathBuf);

// === impl State ===

impl State {
    /// Reads the file in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made or written to, or another agent has it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let lock = lock_folder(folder, "another agent")?;
        let path = folder.join(FILE);
        let kept = match fs::read(&path) {
            Ok(text) => match understand(&text) {
                Some(kept) => kept,
                None => {
                    let aside = folder.join(ASIDE);
                    fs::rename(&path, &aside)?;
                    warn!(aside = %aside.display(), "ports.json not understood, and set aside");
                    Ports::new()
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ports::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { _lock: lock, path, kept })
    }

    /// What was kept.
    pub fn ports(&self) -> &Ports {
        &self.kept
    }

    /// What is to be kept, if that is not what is: these, and those of other VMs that are `known`.
    pub fn due(&self, ports: Ports, known: impl Fn(&VmName) -> bool) -> Option<Ports> {
        let mut next = self.kept.clone();
        next.retain(|vm, _| known(vm));
        next.extend(ports);
        (next != self.kept).then_some(next)
    }

    /// Where they are written; to do that may block.
    pub fn file(&self) -> StateFile {
        StateFile(self.path.clone())
    }

    /// These were written.
    pub fn wrote(&mut self, ports: Ports) {
        self.kept = ports;
    }
}

// === impl StateFile ===

impl StateFile {
    /// Replaces the file.
    ///
    /// # Errors
    /// The file keeps what it said, and the next call tries again.
    pub fn write(&self, ports: &Ports) -> io::Result<()> {
        let text: Map<String, Value> =
            ports.iter().map(|(vm, port)| (vm.name.clone(), (*port).into())).collect();
        replace(&self.0, Value::Object(text).to_string().as_bytes())
    }
}

fn understand(text: &[u8]) -> Option<Ports> {
    let map: BTreeMap<String, u16> = serde_json::from_slice(text).ok()?;
    Some(map.into_iter().map(|(vm, port)| (VmName::on_host(vm), port)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_survive_a_restart_and_a_broken_file_is_set_aside() {
        let own = windlass_testkit::Folder::create().unwrap();
        let folder = own.at("state");
        let (a, b) = (VmName::on_host("a"), VmName::on_host("b"));
        let mut state = State::open(&folder).unwrap();
        let both = Ports::from([(a.clone(), 10_310), (b.clone(), 10_311)]);
        keep(&mut state, both.clone(), |_| true);
        let error = State::open(&folder).unwrap_err().to_string();
        assert_eq!(error, "another agent has this state_dir");
        drop(state);
        let mut state = State::open(&folder).unwrap();
        assert_eq!(*state.ports(), both);
        // One that is not there at this moment keeps its port, one without a file does not.
        keep(&mut state, Ports::new(), |vm| *vm == a);
        drop(state);
        assert_eq!(*State::open(&folder).unwrap().ports(), Ports::from([(a, 10_310)]));

        for text in ["", "[]", "{\"a\":70000}", "{\"a\":1"] {
            fs::write(folder.join(FILE), text).unwrap();
            assert_eq!(*State::open(&folder).unwrap().ports(), Ports::new(), "{text}");
            assert_eq!(fs::read_to_string(folder.join(ASIDE)).unwrap(), text);
        }
    }

    fn keep(state: &mut State, ports: Ports, known: impl Fn(&VmName) -> bool) {
        let due = state.due(ports, known).unwrap();
        state.file().write(&due).unwrap();
        state.wrote(due);
    }
}
