//! What people ask of the controller: which VMs there are, and whether a file would do.

use super::{HostController, Known, Lifecycle, Look, Moment, Resources, VmName, info};
use crate::api::{Check, Checked, VmEntry, VmState};
use crate::commands::{By, Told};
use crate::problem::{Problem, Report};
use std::collections::BTreeMap;
use windlass_protocol::vm_file::VmFile;

impl HostController {
    /// Whether this would do as the file of this VM. Files count as they stand in the folder at
    /// this moment, also those that are not in force yet.
    pub(super) fn check(&self, check: &Check, look: &Look, by: By) -> Checked {
        let Check { name, text } = check;
        let judged = self.folder.check_beside(look, name, text);
        let room = self.room();
        let judged = judged.and_then(|file| match self.in_the_way(name, &file, room) {
            problems if problems.is_empty() => Ok(file),
            problems => Err(problems),
        });
        let (uid, pid) = (by.map(|by| by.uid), by.and_then(|by| by.pid));
        info!(vm = name, valid = judged.is_ok(), uid, pid, "asked whether a vm file would do");
        let path = self.folder.path_of(name);
        let exists = look.as_ref().is_ok_and(|files| files.contains_key(name));
        let released = self.standing(name) == Some(Lifecycle::Released);
        match judged {
            Ok(file) => {
                let before = self.folder.get(name).map_or(Resources::ZERO, |f| f.info.bounds.min);
                let minima = self.folder.minima().saturating_sub(before);
                let minima = minima.saturating_add(file.info.bounds.min);
                let mut warnings = Vec::new();
                if let Some(room) = room.filter(|room| !room.covers(minima)) {
                    let limit =
                        format!("with it the minima come to {minima}, and the node has {room}");
                    warnings.push(Problem::new("min", file.info.bounds.min, limit));
                }
                if !file.qmp.exists() {
                    let limit = "is not there (yet); the VM is managed once it is";
                    warnings.push(Problem::new("qmp", file.qmp.display(), limit));
                }
                if released {
                    let why = format!("{name} is released; `windlass resume {name}` takes it back");
                    warnings.push(Problem::without_value("", why));
                }
                Checked { problems: Vec::new(), warnings, path, exists, released }
            }
            Err(problems) => Checked { problems, warnings: Vec::new(), path, exists, released },
        }
    }

    /// What makes a valid file impossible here.
    fn in_the_way(&self, name: &str, file: &VmFile, room: Option<Resources>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let removed = self.state.kept().vms.iter().find(|(other, known)| {
            *other != name && known.standing == Lifecycle::Removed && known.monitor == file.qmp
        });
        if let Some((other, _)) = removed {
            let limit = format!(
                "{other} has this monitor: its file is gone, and it counts until its hypervisor ends"
            );
            problems.push(Problem::new("qmp", file.qmp.display(), limit));
        }
        let min = file.info.bounds.min;
        if let Some(room) = room.filter(|room| !room.covers(min)) {
            let limit = format!("is more than the node has, which is {room}");
            problems.push(Problem::new("min", min, limit));
        }
        problems
    }

    /// Every VM that has a file or counts in the books, by name.
    pub(super) fn list(&self) -> Vec<VmEntry> {
        let standings = self.agent.lifecycles();
        let sizes: BTreeMap<&str, Option<Resources>> =
            standings.iter().map(|(vm, _, size)| (vm.name.as_str(), *size)).collect();
        let size = |vm: &str| sizes.get(vm).copied().flatten();
        let filed = self.folder.entries();
        let filed =
            filed.map(|(vm, valid, problems)| self.filed_entry(vm, size(vm), valid, problems));
        let kept = self.state.kept();
        let unfiled = kept.vms.iter().filter(|(vm, _)| self.folder.get(vm).is_none());
        let unfiled = unfiled.map(|(vm, known)| self.unfiled_entry(vm, size(vm), known));
        let mut entries: Vec<VmEntry> = filed.chain(unfiled).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// The same of one VM.
    fn entry(&self, vm: &str) -> Option<VmEntry> {
        let size = self.agent.known(&VmName::on_host(vm)).ok().and_then(|known| known.upper);
        if let Some((valid, problems)) = self.folder.entry(vm) {
            return Some(self.filed_entry(vm, size, valid, problems));
        }
        self.known(vm).map(|known| self.unfiled_entry(vm, size, known))
    }

    /// Of a VM that has a file: what of that is in force, and what is wrong with it.
    fn filed_entry(
        &self,
        vm: &str,
        size: Option<Resources>,
        valid: Option<&VmFile>,
        problems: &[Problem],
    ) -> VmEntry {
        let kept = self.state.kept();
        VmEntry {
            name: VmName::on_host(vm),
            state: match (valid, self.standing(vm)) {
                (Some(_), Some(Lifecycle::Released)) if self.is_releasing(vm) => VmState::Releasing,
                (Some(_), Some(Lifecycle::Released)) => VmState::Released,
                (Some(_), Some(Lifecycle::Managed | Lifecycle::Removed) | None) => VmState::Managed,
                (None, _) => VmState::Invalid,
            },
            file: Some(self.folder.path_of(vm)),
            monitor: valid.map(|file| file.qmp.clone()),
            size,
            paused_until: kept.pauses.get(vm).copied().filter(|until| !self.is_past(*until)),
            ordered: kept.orders.get(vm).copied(),
            problems: problems.to_vec(),
        }
    }

    /// Of a VM that counts in the books, and of whose file nothing is in force.
    fn unfiled_entry(&self, vm: &str, size: Option<Resources>, known: &Known) -> VmEntry {
        VmEntry {
            name: VmName::on_host(vm),
            state: VmState::Removed,
            file: None,
            monitor: Some(known.monitor.clone()),
            size: size.or(known.size),
            paused_until: None,
            ordered: self.state.kept().orders.get(vm).copied(),
            problems: Vec::new(),
        }
    }

    /// What is wrong with files, and with the node.
    pub(super) fn problems(&self) -> Vec<Report> {
        self.reports.values().cloned().chain(self.folder.reports()).collect()
    }

    pub(super) fn tell(&mut self, vm: &str, since: Moment) -> Told {
        let name = VmName::on_host(vm);
        self.take_history_of(&name);
        let path = self.folder.path_of(vm).display().to_string();
        let mine = |report: &Report| report.subject == path || report.subject == "node";
        let entry = self.entry(vm);
        let reports = self.problems();
        let mut problems: Vec<String> =
            reports.iter().filter(|r| mine(r)).map(ToString::to_string).collect();
        let given_up = self.releases.get(vm).and_then(|release| release.why.as_ref());
        problems.extend(given_up.map(|why| {
            format!("The release was given up, and the VM let go with what it has: {why}.")
        }));
        let kept = self.state.kept();
        let ordered = kept.orders.get(vm).into_iter().chain(&kept.ordered).copied().collect();
        Told {
            notes: self.history.notes(vm, since),
            problems,
            ordered,
            known: self.history.knows(vm) || entry.is_some(),
            entry,
        }
    }
}
