//! What people order over the socket.

use super::super::desk::{Declined, Order, Told};
use super::{Hold, Moment, Resources, Steward, VmName, info, names};
use crate::api::{Checked, Done, Release, VmEntry, VmState};
use crate::explain::instant;
use crate::problem::{Problem, Report};
use windlass_protocol::{Bytes, MilliCpu};

/// The most a VM can be let go with: beyond this a figure is a mistake.
const MOST: Resources =
    Resources { cpu: MilliCpu::from_cores(512), mem: Bytes::from_gib(64 * 1024) };

impl Steward {
    /// Carries out an order and answers it; what changes something is answered once it is
    /// written down.
    pub(super) fn obey(&mut self, order: Order) {
        match order {
            Order::Freeze(frozen, reply) => {
                let done = self.freeze(frozen);
                self.answer(Ok(done), reply);
            }
            Order::Pause(vm, until, reply) => {
                let done = match until {
                    Some(until) => self.pause(&vm, until),
                    None => self.resume(&vm),
                };
                self.answer(done, reply);
            }
            Order::Release(vm, release, reply) => {
                let done = self.release(&vm, release);
                self.answer(done, reply);
            }
            Order::Check(name, text, reply) => drop(reply.send(Ok(self.check(&name, &text)))),
            Order::List(reply) => drop(reply.send(Ok(self.list()))),
            Order::Problems(reply) => drop(reply.send(Ok(self.problems()))),
            Order::Tell(vm, since, reply) => drop(reply.send(Ok(self.tell(&vm, since)))),
        }
    }

    fn freeze(&mut self, frozen: bool) -> Done {
        let changed = self.agent.is_frozen() != frozen;
        let now = self.clock.now();
        // First the VMs: what cannot be written down must not keep them moving.
        self.agent.freeze(frozen);
        self.state.change(|kept| {
            kept.frozen = frozen.then(|| kept.frozen.unwrap_or(now));
        });
        if !frozen {
            self.reports.remove("state.json");
        }
        info!(frozen, "ordered");
        let message = match (frozen, changed) {
            (true, true) => "frozen: no VM changes its size until `windlass thaw`",
            (true, false) => "it was frozen already",
            (false, true) => "thawed: VMs follow their load again",
            (false, false) => "it was not frozen",
        };
        Done { message: message.to_owned(), changed }
    }

    fn pause(&mut self, vm: &str, until: Moment) -> Result<Done, Declined> {
        let file = self.managed(vm)?;
        self.state.change(|kept| kept.pause(vm, Some(until)));
        self.manage(file);
        info!(vm, until = instant(until), "paused");
        let message = format!("{vm} keeps its size until {}", instant(until));
        Ok(Done { message, changed: true })
    }

    fn resume(&mut self, vm: &str) -> Result<Done, Declined> {
        let file = self.folder.get(vm).cloned().ok_or_else(|| self.unknown(vm))?;
        let released = self.hold(vm) == Some(Hold::Released);
        let paused = self.state.kept().pauses.get(vm).is_some_and(|until| !self.is_past(*until));
        self.state.change(|kept| kept.pause(vm, None));
        let by_file = file.info.paused_until.filter(|until| !self.is_past(*until));
        self.manage(file);
        info!(vm, released, paused, "resumed");
        let message = match (by_file, released || paused) {
            (Some(until), _) => format!("{vm} is paused by its file until {}", instant(until)),
            (None, true) => format!("{vm} follows its load again"),
            (None, false) => format!("{vm} was neither paused nor released"),
        };
        Ok(Done { message, changed: released || paused })
    }

    fn release(&mut self, vm: &str, release: Release) -> Result<Done, Declined> {
        self.managed(vm)?;
        let size = self.release_size(vm, release)?;
        let unknown = self.unknown(vm);
        self.agent.release(&VmName::on_host(vm), size).map_err(|_| unknown)?;
        self.set_hold(vm, Hold::Released);
        self.state.change(|kept| kept.pause(vm, None));
        info!(vm, size = size.map(|size| size.to_string()), "released");
        let with = size.map_or("the size it has".to_owned(), |size| size.to_string());
        let message = format!(
            "{vm} is let go with {with}; it counts until it ends, or until `windlass resume`"
        );
        Ok(Done { message, changed: true })
    }

    /// An axis that is not said is the one that the VM has.
    fn release_size(&self, vm: &str, release: Release) -> Result<Option<Resources>, Declined> {
        let Release { cpu, mem } = release;
        if cpu.is_none() && mem.is_none() {
            return Ok(None);
        }
        let has = self.agent.status().into_iter().find(|status| status.name.name == vm);
        let has = has.and_then(|status| status.upper);
        let (cpu, mem) = (cpu.or(has.map(|has| has.cpu)), mem.or(has.map(|has| has.mem)));
        let (Some(cpu), Some(mem)) = (cpu, mem) else {
            let why = format!("{vm} was not seen yet: say both --cpu and --memory");
            return Err(Declined::NotNow(why));
        };
        let size = Resources { cpu, mem };
        if cpu.is_zero() || mem.is_zero() || !MOST.covers(size) {
            let why = format!("{size}: must be above zero, and at most {MOST}");
            return Err(Declined::Senseless(why));
        }
        Ok(Some(size))
    }

    fn check(&self, name: &str, text: &str) -> Checked {
        let path = self.folder.path_of(name);
        let exists = self.folder.entries().any(|(stem, ..)| stem == name);
        let released = self.hold(name) == Some(Hold::Released);
        match self.folder.check(name, text) {
            Ok(file) => {
                let before = self.folder.get(name).map_or(Resources::ZERO, |f| f.info.bounds.min);
                let minima = self.folder.minima().saturating_sub(before);
                let minima = minima.saturating_add(file.info.bounds.min);
                let room = self.books.with_books(|books| books.room());
                let mut warnings = Vec::new();
                if !room.covers(minima) {
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

    fn list(&self) -> Vec<VmEntry> {
        let kept = self.state.kept();
        let standings = self.agent.standings();
        let size = |name: &str| standings.iter().find(|(vm, ..)| vm.name == name)?.2;
        let mut entries: Vec<VmEntry> = self
            .folder
            .entries()
            .map(|(stem, valid, problems)| VmEntry {
                name: VmName::on_host(stem),
                state: match (valid, self.hold(stem)) {
                    (Some(_), Some(Hold::Released)) => VmState::Released,
                    (Some(_), Some(Hold::Managed | Hold::Removed) | None) => VmState::Managed,
                    (None, _) => VmState::Invalid,
                },
                file: Some(self.folder.path_of(stem)),
                monitor: valid.map(|file| file.qmp.clone()),
                size: size(stem),
                paused_until: kept.pauses.get(stem).copied(),
                problems: problems.to_vec(),
            })
            .collect();
        let unfiled = kept.vms.iter().filter(|(name, _)| self.folder.get(name).is_none());
        entries.extend(unfiled.map(|(name, known)| VmEntry {
            name: VmName::on_host(name.as_str()),
            state: VmState::Removed,
            file: None,
            monitor: Some(known.monitor.clone()),
            size: size(name).or(known.size),
            paused_until: None,
            problems: Vec::new(),
        }));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// What is wrong with files, and with the node.
    pub(super) fn problems(&self) -> Vec<Report> {
        self.reports.values().cloned().chain(self.folder.reports()).collect()
    }

    fn tell(&mut self, vm: &str, since: Moment) -> Told {
        let name = VmName::on_host(vm);
        self.take_history_of(&name);
        let path = self.folder.path_of(vm).display().to_string();
        let mine = |report: &Report| report.subject == path || report.subject == "node";
        let entry = self.list().into_iter().find(|entry| entry.name == name);
        let reports = self.problems();
        Told {
            notes: self.history.notes(vm, since),
            problems: reports.iter().filter(|r| mine(r)).map(ToString::to_string).collect(),
            known: self.history.knows(vm) || entry.is_some(),
            entry,
        }
    }

    /// The file of a VM that is managed.
    fn managed(&self, vm: &str) -> Result<windlass_protocol::vm_file::VmFile, Declined> {
        let file = self.folder.get(vm).cloned().ok_or_else(|| self.unknown(vm))?;
        if self.hold(vm) == Some(Hold::Released) {
            let why = format!("{vm} is released already; `windlass resume {vm}` takes it back");
            return Err(Declined::NotNow(why));
        }
        Ok(file)
    }

    fn unknown(&self, vm: &str) -> Declined {
        let vm = vm.chars().take(80).collect();
        Declined::UnknownVm { vm, known: names(self.state.kept()) }
    }
}
