//! An API server that has annotations, plugins that lead one after the other, and the agents of VMs.
//!
//! A write that was sent reaches the API server at any later time or never, also when its plugin has given it up or
//! leads no longer; its answer may be lost. The watch lags behind. A person edits an annotation. What a VM may have is
//! what its agent was answered; the judge asks what a plugin that starts at this moment would count the VM with.

use crate::{NOW, cu, record_of};
use proptest::prelude::*;
use std::time::Duration;
use windlass_plugin_core::ceilings::{CeilingWrite, FirstCeiling, Kept};
use windlass_plugin_core::{Ask, Books, Proposed};
use windlass_protocol::pod::Ceiling;
use windlass_protocol::{Bytes, Moment, Resources, VmName};

const VMS: usize = 3;
const ROOM: u64 = 8;
/// Of each VM; agents ask for no more.
const MAX: u64 = 6;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An agent asks; its request may have to wait.
    Ask { vm: usize, units: u64, says_last: bool, is_heard: bool },
    /// A request that waits is said again.
    Again { vm: usize, is_heard: bool },
    /// A write that is due is sent.
    Send(usize),
    /// A write reaches the API server, and its plugin hears the answer or gives the write up.
    Land { nth: usize, is_heard: bool },
    /// The plugin gives up the write of a VM, which stays on its way.
    GiveUp(usize),
    /// The watch shows the next change.
    Watch,
    /// A person sets or removes an annotation.
    Edit { vm: usize, units: Option<u64> },
    /// Time passes, and the plugin looks for ceilings that are too high or too low.
    Mend(u64),
    /// Another plugin leads.
    Restart,
}

/// A write that was sent.
struct OnItsWay {
    epoch: u64,
    vm: usize,
    write: CeilingWrite,
}

#[derive(Clone, Copy, Default)]
struct Agent {
    /// What the VM may have.
    permit: Option<Resources>,
    /// A request that waits.
    waits: Option<Ask>,
    /// A person's edit leaves so much uncovered.
    excused: Excused,
    /// A plugin started while an edit left something uncovered, and does not know of it.
    is_unknown: bool,
}

#[derive(Clone, Copy, Default)]
enum Excused {
    #[default]
    Nothing,
    /// The watch has not shown the edit.
    Everything,
    /// What may have been promised when the watch showed it.
    Promised(Resources),
}

pub(crate) struct Model {
    epoch: u64,
    now: Moment,
    books: Books,
    server: [Option<Ceiling>; VMS],
    agents: [Agent; VMS],
    writes: Vec<OnItsWay>,
    /// The write of each VM that the plugin waits for.
    waited_for: [Option<Ceiling>; VMS],
    /// What the watch has not shown: the VM, the annotation, and whether a person set it.
    events: Vec<(usize, Option<Ceiling>, bool)>,
    edits: u64,
}

// === impl Model ===

impl Model {
    pub(crate) fn new() -> Self {
        let mut model = Self {
            epoch: 1,
            now: NOW,
            books: Books::new(cu(ROOM)),
            server: [None; VMS],
            agents: [Agent::default(); VMS],
            writes: Vec::new(),
            waited_for: [None; VMS],
            events: Vec::new(),
            edits: 0,
        };
        for vm in 0..VMS {
            // The last pod came past the plugin, and has no ceiling.
            let kept = Kept { max: cu(MAX), shown: None, has: Resources::ZERO, alone: cu(MAX) };
            let most = if vm + 1 < VMS { cu(1) } else { cu(MAX) };
            model.books.enter_pod(name(vm), record_of(), cu(1), most, Some(kept));
            if vm + 1 < VMS {
                let size = model.books.first_ceiling(&name(vm)).unwrap();
                let first = FirstCeiling::new(1, size, None);
                model.set(vm, Some(first.recorded), false);
                model.books.ceiling_bound(&name(vm), first);
            }
        }
        model
    }

    /// Whether the step is a decision that takes room.
    pub(crate) fn step(&mut self, step: &Step) -> bool {
        match *step {
            Step::Ask { vm, units, says_last, is_heard } => {
                let last_permit = self.agents[vm].permit.filter(|_| says_last);
                let ask = Ask { last_permit, ..Ask::from(cu(units)) };
                // What it offers to give back is its own no more.
                let agent = &mut self.agents[vm];
                agent.permit = agent.permit.map(|permit| permit.min(cu(units)));
                agent.waits = None;
                match self.books.propose(self.now, &name(vm), ask).unwrap() {
                    Proposed::Granted(granted) => self.answer(vm, granted.permit, is_heard),
                    Proposed::Waits => self.agents[vm].waits = Some(ask),
                }
                return true;
            }
            Step::Again { vm, is_heard } => {
                if let Some(ask) = self.agents[vm].waits.take() {
                    let granted = self.books.request(self.now, &name(vm), ask).unwrap();
                    self.answer(vm, granted.permit, is_heard);
                    return true;
                }
            }
            Step::Send(vm) => self.send(vm),
            Step::Land { nth, is_heard } => {
                if !self.writes.is_empty() {
                    let write = self.writes.remove(nth % self.writes.len());
                    self.land(write, is_heard);
                }
            }
            Step::GiveUp(vm) => self.give_up(vm),
            Step::Watch => self.watch(),
            Step::Edit { vm, units } => {
                self.edits += 1;
                // No text returns.
                let odd = |size: Resources| Resources {
                    mem: size.mem.saturating_add(Bytes::from_bytes(self.edits)),
                    ..size
                };
                let set = units.map(|units| Ceiling { epoch: 1, write: 0, size: odd(cu(units)) });
                self.set(vm, set, true);
                self.agents[vm].excused = Excused::Everything;
            }
            Step::Mend(secs) => {
                self.now = self.now.after(Duration::from_secs(secs));
                self.books.ceilings_to_mend(self.now);
            }
            Step::Restart => self.restart(),
        }
        false
    }

    /// A VM that may have more than a plugin which starts now would count it with.
    pub(crate) fn uncovered(&mut self) -> Option<String> {
        for vm in 0..VMS {
            let permit = self.agents[vm].permit.unwrap_or_default();
            let counted = counted(self.server[vm]);
            let is_excused = match self.agents[vm].excused {
                Excused::Nothing => false,
                Excused::Everything => true,
                Excused::Promised(promised) => promised.covers(permit),
            };
            let reserved = self.books.reserved_for(&name(vm)).unwrap();
            let is_covered = reserved.covers(permit);
            // A late write may cover it, too, and books that do not know of it lower that again.
            if let Excused::Promised(promised) = self.agents[vm].excused
                && is_covered
                && counted.covers(promised)
            {
                self.agents[vm].excused = Excused::Nothing;
            }
            if !counted.covers(permit) && !is_excused {
                return Some(format!("vm {vm} may have {permit}, and its ceiling is {counted}"));
            }
            self.agents[vm].is_unknown &= !is_covered;
            if !is_covered && !is_excused && !self.agents[vm].is_unknown {
                return Some(format!("vm {vm} may have {permit}, and {reserved} is reserved"));
            }
        }
        None
    }

    pub(crate) fn reserved(&self) -> Resources {
        self.books.reserved()
    }

    pub(crate) fn room(&self) -> Resources {
        self.books.room()
    }

    /// Writes are answered from here on. Whether each agent gets what it wants within a few requests.
    pub(crate) fn comes_to_rest(&mut self) -> bool {
        while !self.events.is_empty() {
            self.watch();
        }
        let wanted = [cu(2), cu(3), cu(1)];
        for _ in 0..6 {
            // A smaller figure counts once no earlier request can be under way.
            self.now = self.now.after(Duration::from_secs(20));
            for (vm, wanted) in wanted.into_iter().enumerate() {
                self.give_up(vm);
                let units = wanted.cpu.milli() / 1000;
                self.step(&Step::Ask { vm, units, says_last: true, is_heard: true });
                self.send(vm);
                while let Some(write) = self.writes.pop() {
                    self.land(write, true);
                }
                self.step(&Step::Again { vm, is_heard: true });
            }
        }
        self.agents.iter().zip(wanted).all(|(agent, wanted)| agent.permit == Some(wanted))
    }

    fn answer(&mut self, vm: usize, permit: Resources, is_heard: bool) {
        if is_heard {
            self.agents[vm].permit = Some(permit);
        }
    }

    fn send(&mut self, vm: usize) {
        if self.waited_for[vm].is_some() {
            return;
        }
        if let Some(write) = self.books.ceiling_due(&name(vm), self.epoch) {
            self.waited_for[vm] = Some(write.next);
            self.writes.push(OnItsWay { epoch: self.epoch, vm, write });
        }
    }

    fn land(&mut self, OnItsWay { epoch, vm, write }: OnItsWay, is_heard: bool) {
        let is_met = self.server[vm] == write.known;
        if is_met {
            self.set(vm, Some(write.next), false);
        }
        if epoch != self.epoch || self.waited_for[vm] != Some(write.next) {
            return;
        }
        self.waited_for[vm] = None;
        if !is_heard {
            self.books.ceiling_given_up(&name(vm));
        } else if is_met {
            self.books.ceiling_written(&name(vm), write.next);
        } else {
            self.books.ceiling_read(&name(vm), self.server[vm]);
            self.send(vm);
        }
    }

    fn give_up(&mut self, vm: usize) {
        if self.waited_for[vm].take().is_some() {
            self.books.ceiling_given_up(&name(vm));
        }
    }

    fn set(&mut self, vm: usize, ceiling: Option<Ceiling>, by_hand: bool) {
        self.server[vm] = ceiling;
        self.events.push((vm, ceiling, by_hand));
    }

    fn watch(&mut self) {
        if self.events.is_empty() {
            return;
        }
        let (vm, ceiling, by_hand) = self.events.remove(0);
        let promised = self.books.reserved_for(&name(vm)).unwrap();
        self.show(vm, ceiling);
        let is_last = !self.events.iter().any(|(of, _, by_hand)| *of == vm && *by_hand);
        if by_hand && is_last {
            let permit = self.agents[vm].permit.unwrap_or_default();
            self.agents[vm].excused = Excused::Promised(promised.max(permit));
        }
    }

    fn show(&mut self, vm: usize, shown: Option<Ceiling>) {
        let kept = Kept { max: cu(MAX), shown, has: Resources::ZERO, alone: cu(MAX) };
        self.books.enter_pod(name(vm), record_of(), cu(1), counted(shown), Some(kept));
    }

    fn restart(&mut self) {
        self.epoch += 1;
        self.books = Books::new(cu(ROOM));
        self.waited_for = [None; VMS];
        self.events.clear();
        for vm in 0..VMS {
            self.show(vm, self.server[vm]);
            let agent = &mut self.agents[vm];
            agent.waits = None;
            agent.is_unknown |= !matches!(agent.excused, Excused::Nothing);
            if let Excused::Everything = agent.excused {
                agent.excused = Excused::Promised(agent.permit.unwrap_or_default());
            }
            // What the watch of an earlier plugin had not shown.
            agent.is_unknown |= !counted(self.server[vm]).covers(agent.permit.unwrap_or_default());
        }
    }
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let vm = 0..VMS;
    let asked = (vm.clone(), 1..=MAX, any::<bool>(), prop::bool::weighted(0.8));
    prop_oneof![
        8 => asked.prop_map(|(vm, units, says_last, is_heard)| {
            Step::Ask { vm, units, says_last, is_heard }
        }),
        6 => (vm.clone(), prop::bool::weighted(0.8))
            .prop_map(|(vm, is_heard)| Step::Again { vm, is_heard }),
        6 => vm.clone().prop_map(Step::Send),
        6 => (0..6_usize, prop::bool::weighted(0.7))
            .prop_map(|(nth, is_heard)| Step::Land { nth, is_heard }),
        2 => vm.clone().prop_map(Step::GiveUp),
        3 => Just(Step::Watch),
        1 => (vm, prop::option::weighted(0.7, 1..=MAX)).prop_map(|(vm, units)| Step::Edit { vm, units }),
        2 => prop_oneof![Just(10), Just(40), Just(301)].prop_map(Step::Mend),
        1 => Just(Step::Restart),
    ]
}

/// What a plugin that lists the pods counts a VM with.
fn counted(ceiling: Option<Ceiling>) -> Resources {
    ceiling.map_or(cu(MAX), |ceiling| ceiling.size).max(cu(1))
}

fn name(vm: usize) -> VmName {
    VmName::on_host(format!("vm{vm}"))
}
