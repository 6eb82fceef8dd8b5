//! What people order over the socket: freeze, pause, release, and their ends.
//!
//! Each order is logged and kept with the process that gave it.

use super::release;
use super::{HostController, Lifecycle, Moment, Resources, VmName, info, warn};
use crate::api::{Done, Release, Releasing};
use crate::commands::By;
use crate::explain::{instant, state};
use crate::problem::Problem;
use crate::refused::Refused;
use crate::state::put;
use std::fmt::Display;
use windlass_protocol::status::{OrderKind, Ordered};
use windlass_protocol::vm_file::VmFile;
use windlass_protocol::{Bounds, Capabilities, Mode};

impl HostController {
    /// Nothing of any VM moves, or that ends.
    pub(crate) fn freeze(&mut self, frozen: bool, by: By) -> Done {
        let changed = self.agent.is_frozen() != frozen;
        let now = self.clock.now();
        let what = if frozen { OrderKind::Freeze } else { OrderKind::Thaw };
        let order = self.ordered(None, what, by, "");
        // First the VMs: what cannot be written down must not keep them moving.
        self.agent.freeze(frozen);
        self.state.change(|kept| {
            let is_new = kept.freeze(frozen.then(|| kept.frozen.unwrap_or(now)));
            // The first order to freeze counts, and its sender.
            let counts = changed || kept.ordered.is_none();
            (counts && kept.ordered.replace(order) != Some(order)) || is_new
        });
        self.tell_order();
        if !frozen {
            self.reports.remove("state.json");
        }
        let message = match (frozen, changed) {
            (true, true) => "frozen: no VM changes its size until `windlass thaw`",
            (true, false) => "it was frozen already",
            (false, true) => "thawed: VMs follow their load again",
            (false, false) => "it was not frozen",
        };
        Done { message: message.to_owned(), changed }
    }

    /// Nothing of this VM moves until then.
    pub(crate) fn pause(&mut self, vm: &str, until: Moment, by: By) -> Result<Done, Refused> {
        let file = self.managed(vm)?;
        self.state.change(|kept| kept.pause(vm, Some(until)));
        self.ordered(Some(vm), OrderKind::Pause, by, &format!("until {}", instant(until)));
        self.manage(file);
        let message = format!("{vm} keeps its size until {}", instant(until));
        Ok(Done { message, changed: true })
    }

    /// Ends a pause and a release.
    pub(crate) fn resume(&mut self, vm: &str, by: By) -> Result<Done, Refused> {
        let file = self.filed(vm)?;
        let released = self.standing(vm) == Some(Lifecycle::Released);
        let paused = self.state.kept().pauses.get(vm).is_some_and(|until| !self.is_past(*until));
        self.state.change(|kept| kept.pause(vm, None));
        self.ordered(Some(vm), OrderKind::Resume, by, "");
        self.releases.remove(vm);
        let by_file = file.info.paused_until.filter(|until| !self.is_past(*until));
        self.manage(file);
        let message = match (by_file, released || paused) {
            (Some(until), _) => format!("{vm} is paused by its file until {}", instant(until)),
            (None, true) => format!("{vm} follows its load again"),
            (None, false) => format!("{vm} was neither paused nor released"),
        };
        Ok(Done { message, changed: released || paused })
    }

    /// Lets go of this VM.
    pub(crate) fn release(&mut self, vm: &str, release: Release, by: By) -> Result<Done, Refused> {
        let file = self.managed(vm)?;
        let size = self.release_size(&file, release)?;
        let name = VmName::on_host(vm);
        let waits = size.map_or(String::new(), |size| self.short_of(&name, size));
        self.agent.release(&name, size).map_err(|_| self.unknown(vm))?;
        self.releases.insert(vm.to_owned(), release::Release::begin(size));
        self.keep_standing(vm);
        self.state.change(|kept| kept.pause(vm, None));
        let with = size.map_or("the size it has".to_owned(), |size| size.to_string());
        self.ordered(Some(vm), OrderKind::Release, by, &format!("with {with}"));
        let message = match size {
            Some(_) => format!("{vm} is brought to {with}, and then let go{waits}"),
            None => format!("{vm} is about to be let go with {with}"),
        };
        Ok(Done { message, changed: true })
    }

    /// The size to let go with; an axis that is not said is the one that the VM has.
    fn release_size(&self, file: &VmFile, wish: Release) -> Result<Option<Resources>, Refused> {
        let vm = &file.info.name.name;
        if wish.cpu.is_none() && wish.mem.is_none() {
            return Ok(None);
        }
        if file.info.mode == Mode::Observe {
            let why = format!("{vm} is only watched (mode is observe), so it is given no size");
            return Err(Refused::NotNow(why));
        }
        let known = self.agent.known(&file.info.name).ok();
        let Some(known) = known.filter(|known| known.present) else {
            let why = format!("{vm} is not there, so it is given no size; say neither");
            return Err(Refused::NotNow(why));
        };
        let problems = limits(file, known.can.as_ref(), self.room(), wish);
        if !problems.is_empty() {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(Refused::Senseless(lines.join("; ")));
        }
        // vCPUs that its guest has parked are not what it uses.
        let status = self.agent.status().into_iter().find(|vm| vm.name == file.info.name);
        let uses = status.and_then(|vm| vm.online);
        let has = known.upper;
        let cpu = wish.cpu.or(uses).or(has.map(|has| has.cpu));
        let mem = wish.mem.or(has.map(|has| has.mem));
        let (Some(cpu), Some(mem)) = (cpu, mem) else {
            let why = format!("{vm} was not seen yet: say both --cpu and --memory");
            return Err(Refused::NotNow(why));
        };
        Ok(Some(Resources { cpu, mem }))
    }

    /// What a release to this size has to wait for, where others have the room.
    fn short_of(&self, vm: &VmName, size: Resources) -> String {
        let Some(books) = &self.books else { return String::new() };
        let node = books.status(self.clock.now());
        let own = node.vms.iter().find(|booked| booked.name == *vm).map(|booked| booked.reserved);
        let free = node.room.saturating_sub(node.reserved);
        let within = free.saturating_add(own.unwrap_or_default());
        if within.covers(size) {
            return String::new();
        }
        format!("; of the node's room {free} are free now, so it waits for what others give back")
    }

    /// Whether a VM is on its way to the size of its release.
    pub(super) fn is_releasing(&self, vm: &str) -> bool {
        self.releases.get(vm).is_some_and(release::Release::is_under_way)
    }

    /// How far the release of a VM came.
    pub(crate) fn releasing(&mut self, vm: &str) -> Result<Releasing, Refused> {
        if self.standing(vm) != Some(Lifecycle::Released) {
            self.filed(vm)?;
            return Err(Refused::NotNow(format!("{vm} is not released")));
        }
        let name = VmName::on_host(vm);
        let known = self.agent.known(&name).unwrap_or_default();
        let release = self.releases.entry(vm.to_owned()).or_insert_with(release::Release::lost);
        release.look(known);
        let under_way = release.is_under_way();
        let status = self.agent.status().into_iter().find(|status| status.name == name);
        Ok(Releasing {
            at: self.clock.now(),
            vm: name,
            state: release.state,
            wanted: release.wanted,
            has: known.upper,
            status: status.filter(|_| under_way),
            why: release.why.clone(),
        })
    }

    /// Looks at every release, and gives up those that come to nothing.
    pub(super) fn look_at_releases(&mut self) {
        let (agent, now) = (&self.agent, self.clock.now());
        let is_released = |vm: &VmName| agent.lifecycle(vm) == Some(Lifecycle::Released);
        self.releases.retain(|vm, _| is_released(&VmName::on_host(vm.as_str())));
        for (vm, release) in &mut self.releases {
            let name = VmName::on_host(vm.as_str());
            let known = agent.known(&name).unwrap_or_default();
            let why = match release.round(known, agent.is_frozen()) {
                None => continue,
                Some(release::Hopeless::Gone) => "its hypervisor has ended".to_owned(),
                Some(release::Hopeless::Stalled) => {
                    let status = agent.status().into_iter().find(|status| status.name == name);
                    let state = status.map_or(String::new(), |vm| format!(": {}", state(&vm, now)));
                    format!("it came no nearer to that size for 10 minutes{state}")
                }
            };
            warn!(vm, why, "release given up; the vm is let go with what it has");
            // One that the agent does not have is let go already.
            let _ = agent.release(&name, None);
            release.give_up(why);
        }
    }

    /// Logs an order about a VM or the host, and keeps the one about a VM.
    fn ordered(&mut self, vm: Option<&str>, what: OrderKind, by: By, how: &str) -> Ordered {
        let (uid, pid) = (by.map(|by| by.uid), by.and_then(|by| by.pid));
        info!(order = what.to_string(), vm, how, uid, pid, "ordered");
        let order = Ordered { what, at: self.clock.now(), by };
        if let Some(vm) = vm {
            self.state.change(|kept| put(&mut kept.orders, vm, order));
        }
        order
    }

    /// Shows the last order about the host to those who ask for its state.
    pub(super) fn tell_order(&self) {
        self.last_order.send_replace(self.state.kept().ordered);
    }

    /// The file of a VM that is managed.
    fn managed(&self, vm: &str) -> Result<VmFile, Refused> {
        let file = self.filed(vm)?;
        if self.standing(vm) == Some(Lifecycle::Released) {
            let why = match self.is_releasing(vm) {
                true => format!("{vm} is being released already; `windlass resume {vm}` ends that"),
                false => format!("{vm} is released already; `windlass resume {vm}` takes it back"),
            };
            return Err(Refused::NotNow(why));
        }
        Ok(file)
    }

    /// The file of a VM that is managed or released.
    fn filed(&self, vm: &str) -> Result<VmFile, Refused> {
        self.folder.get(vm).cloned().ok_or_else(|| self.unknown(vm))
    }

    fn unknown(&self, vm: &str) -> Refused {
        let shown: String = vm.chars().take(80).collect();
        Refused::UnknownVm(if self.standing(vm) == Some(Lifecycle::Removed) {
            format!("{shown} was removed; what it has stays reserved until its QEMU ends")
        } else if self.folder.entries().any(|(stem, ..)| stem == vm) {
            format!("the file of {shown} is not valid; `windlass vm list` says why")
        } else {
            let names: Vec<&str> =
                self.folder.valid().map(|file| file.info.name.name.as_str()).take(20).collect();
            match names.is_empty() {
                true => format!("there is no VM {shown}, nor any other"),
                false => format!("there is no VM {shown}; there are {}", names.join(", ")),
            }
        })
    }
}

/// What is wrong with a size to let go with: only of the axes that are said.
fn limits(
    file: &VmFile,
    can: Option<&Capabilities>,
    room: Option<Resources>,
    wish: Release,
) -> Vec<Problem> {
    let Bounds { min, max } = file.info.bounds;
    // As far as the hypervisor was asked.
    let (least, most) = (can.map(|can| can.min), can.map(|can| can.max));
    let cpu = wish.cpu.and_then(|cpu| {
        let step = can.map(|can| can.cpu_step).filter(|step| cpu.round_up(*step) != cpu);
        let limits = [
            at_least(cpu, Some(min.cpu), "min.cpu of the VM"),
            at_most(cpu, Some(max.cpu), "max.cpu of the VM"),
            at_most(cpu, room.map(|room| room.cpu), "the node"),
            at_least(cpu, least.map(|least| least.cpu), "what its QEMU can do"),
            at_most(cpu, most.map(|most| most.cpu), "what its QEMU can do"),
            step.map(|step| format!("a multiple of {step}")),
        ];
        broken("cpu", cpu, limits)
    });
    let memory = wish.mem.and_then(|mem| {
        let limits = [
            at_least(mem, Some(min.mem), "min.memory of the VM"),
            at_most(mem, Some(max.mem), "max.memory of the VM"),
            at_most(mem, room.map(|room| room.mem), "the node"),
            at_least(mem, least.map(|least| least.mem), "what the VM was started with"),
            at_most(mem, most.map(|most| most.mem), "what its QEMU can do"),
        ];
        broken("memory", mem, limits)
    });
    cpu.into_iter().chain(memory).collect()
}

fn at_least<T: PartialOrd + Display>(value: T, limit: Option<T>, whose: &str) -> Option<String> {
    limit.filter(|limit| value < *limit).map(|limit| format!("at least {limit} ({whose})"))
}

fn at_most<T: PartialOrd + Display>(value: T, limit: Option<T>, whose: &str) -> Option<String> {
    limit.filter(|limit| value > *limit).map(|limit| format!("at most {limit} ({whose})"))
}

/// A value with every limit that it breaks.
fn broken<const N: usize>(
    field: &str,
    value: impl Display,
    limits: [Option<String>; N],
) -> Option<Problem> {
    let broken: Vec<String> = limits.into_iter().flatten().collect();
    let limit = format!("must be {}", broken.join(", and "));
    (!broken.is_empty()).then(|| Problem::new(field, value, limit))
}
