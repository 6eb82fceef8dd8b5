//! Whose each monitor and each informant is.
//!
//! It follows what is in force, where no two VMs have the same: a file is compared with those that it
//! can clash with, and not with every other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use windlass_protocol::vm_file::VmFile;

/// The stems of the files that are in force, by what each says.
#[derive(Debug, Default)]
pub(super) struct Owners {
    monitors: BTreeMap<PathBuf, String>,
    informants: BTreeMap<SocketAddr, String>,
}

// === impl Owners ===

impl Owners {
    /// This file is in force.
    pub(super) fn add(&mut self, stem: &str, file: &VmFile) {
        self.monitors.insert(file.qmp.clone(), stem.to_owned());
        self.informants.insert(file.informant, stem.to_owned());
    }

    /// This file is in force no more.
    pub(super) fn remove(&mut self, stem: &str, file: &VmFile) {
        if self.monitors.get(&file.qmp).is_some_and(|owner| owner == stem) {
            self.monitors.remove(&file.qmp);
        }
        if self.informants.get(&file.informant).is_some_and(|owner| owner == stem) {
            self.informants.remove(&file.informant);
        }
    }

    /// Who has what this file says, by stem.
    pub(super) fn of(&self, file: &VmFile) -> impl Iterator<Item = &str> {
        let (monitor, informant) =
            (self.monitors.get(&file.qmp), self.informants.get(&file.informant));
        let owners: BTreeSet<&str> =
            monitor.into_iter().chain(informant).map(String::as_str).collect();
        owners.into_iter()
    }
}
