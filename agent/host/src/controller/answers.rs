//! What people ask of the controller: which VMs there are, and whether a file would do.

use super::{HostController, Lifecycle, Look, Moment, Resources, VmName, info};
use crate::api::{Check, Checked, Explained, VmEntry, VmState};
use crate::commands::By;
use crate::explain::{parked_by_others, returned_by_others};
use crate::problem::{Problem, Report};
use crate::refused::Refused;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::Decision;
use windlass_protocol::vm_file::VmFile;

impl HostController {
    /// Whether this would do as the file of this VM. Files count as they stand in the folder at
    /// this moment, also those that are not in force yet.
    pub(crate) fn check(&self, check: &Check, look: &Look, by: By) -> Checked {
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
    pub(crate) fn list(&self) -> Vec<VmEntry> {
        let standings = self.agent.lifecycles();
        let sizes: BTreeMap<&str, Option<Resources>> =
            standings.iter().map(|(vm, _, size)| (vm.name.as_str(), *size)).collect();
        let filed = self.folder.entries().map(|(vm, ..)| vm);
        let counted = self.state.kept().vms.keys().map(String::as_str);
        let names: BTreeSet<&str> = filed.chain(counted).collect();
        names.iter().filter_map(|vm| self.entry(vm, sizes.get(vm).copied().flatten())).collect()
    }

    /// The same of one VM, which has this size: what of its file is in force, or else what the
    /// books know.
    fn entry(&self, vm: &str, size: Option<Resources>) -> Option<VmEntry> {
        let (filed, known, kept) = (self.folder.entry(vm), self.known(vm), self.state.kept());
        let in_force = filed.and_then(|(valid, _)| valid);
        let state = match (in_force, self.standing(vm)) {
            (Some(_), Some(Lifecycle::Released)) if self.is_releasing(vm) => VmState::Releasing,
            (Some(_), Some(Lifecycle::Released)) => VmState::Released,
            (Some(_), Some(Lifecycle::Managed | Lifecycle::Removed) | None) => VmState::Managed,
            (None, _) if filed.is_some() => VmState::Invalid,
            (None, _) => known.map(|_| VmState::Removed)?,
        };
        let booked = known.filter(|_| in_force.is_none());
        let pause = filed.and_then(|_| kept.pauses.get(vm)).copied();
        Some(VmEntry {
            name: VmName::on_host(vm),
            state,
            file: filed.map(|_| self.folder.path_of(vm)),
            monitor: in_force.map(|file| &file.qmp).or(booked.map(|known| &known.monitor)).cloned(),
            size: size.or(booked.and_then(|known| known.size)),
            paused_until: pause.filter(|until| !self.is_past(*until)),
            ordered: kept.orders.get(vm).copied(),
            problems: filed.map_or_else(Vec::new, |(_, problems)| problems.to_vec()),
        })
    }

    /// What is wrong with files, and with the node.
    pub(crate) fn problems(&self) -> Vec<Report> {
        self.reports.values().cloned().chain(self.folder.reports()).collect()
    }

    /// All that is known of one VM, and what happened to it in the last minutes.
    pub(crate) fn explain(&mut self, vm: VmName, minutes: u64) -> Result<Explained, Refused> {
        self.take_history_of(&vm);
        let (name, at) = (&vm.name, self.clock.now());
        let since = Moment::from_millis(at.millis().saturating_sub(minutes * 60_000));
        let decided = self.agent.decisions(&vm);
        let size = self.agent.known(&vm).ok().and_then(|known| known.upper);
        let entry = self.entry(name, size);
        if decided.is_err() && entry.is_none() && !self.history.knows(name) {
            return Err(Refused::nothing_is_known_of(&vm));
        }
        let decided = decided.unwrap_or_default();
        let recent = |decision: &Decision| decision.at >= since;
        let path = self.folder.path_of(name).display().to_string();
        let mine = |report: &&Report| report.subject == path || report.subject == "node";
        let reports = self.problems();
        let mut problems: Vec<String> =
            reports.iter().filter(mine).map(ToString::to_string).collect();
        let given_up = self.releases.get(name).and_then(|release| release.why.as_ref());
        problems.extend(given_up.map(|why| {
            format!("The release was given up, and the VM let go with what it has: {why}.")
        }));
        let (kept, vms) = (self.state.kept(), self.agent.status());
        Ok(Explained {
            at,
            decisions: decided.closed.into_iter().filter(recent).collect(),
            open: decided.open,
            notes: self.history.notes(name, since),
            ordered: kept.orders.get(name).into_iter().chain(&kept.ordered).copied().collect(),
            parked: parked_by_others(&vm, &vms),
            returning: returned_by_others(&vm, &vms),
            cpu_limit: None,
            status: vms.into_iter().find(|status| status.name == vm),
            state: entry.as_ref().map(|entry| entry.state),
            monitor: entry.and_then(|entry| entry.monitor),
            node: self.books.as_ref().map(|books| books.status(at)),
            problems,
            vm,
        })
    }
}
