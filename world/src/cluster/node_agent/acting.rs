//! What an agent does with a VM that it manages: it looks at what the watch shows, writes what its permit allows, and asks.

use super::{NodeAgent, Out, Task, Turn};
use crate::cluster::agent::Agent;
use crate::cluster::call::{Call, Kind};
use crate::cluster::met::Met;
use windlass_drivers_neonvm_core as driver;
use windlass_drivers_neonvm_core::{Change, Unwritten, Writes};
use windlass_protocol::vm_object::Machine;
use windlass_protocol::{Moment, NoSuccess, Resize, Resources, RunState, VmInfo, VmName};

/// A VM that is managed.
#[derive(Debug)]
pub(crate) struct Runner {
    object: VmName,
    /// The uid of its pod.
    pub(crate) uid: String,
    pub(crate) session: u64,
    /// Until when its guest lets it act.
    pub(crate) leased_until: Moment,
    writes: Writes,
    /// What the last write asked for, while it may or may not have taken effect.
    sent: Option<Resources>,
    /// A request of it is under way.
    is_busy: bool,
    /// When it asks the plugin next.
    pub(crate) asks_at: Moment,
}

/// What is to be done for a VM.
enum Act {
    Writes(Change, Resources),
    Asks(Resources),
}

// === impl NodeAgent ===

impl NodeAgent {
    /// Each VM does what it may.
    pub(super) fn act(&mut self, turn: &mut Turn<'_>) {
        self.settle(turn);
        if self.follows(Kind::Objects).is_none() {
            return;
        }
        for pod in self.runners.keys().cloned().collect::<Vec<_>>() {
            let Some(runner) = self.runners.get_mut(&pod) else { continue };
            let Some(shown) = self.shown.get(&runner.object).cloned() else { continue };
            let Some(scaler) = turn.scalers.get(&runner.uid) else { continue };
            let is_leased = turn.now < runner.leased_until;
            let Some(act) = runner.plan((turn.now, turn.world), &shown.machine, &pod, scaler)
            else {
                continue;
            };
            if !is_leased {
                turn.met.note("agents of nodes that waited for their guest");
                continue;
            }
            match act {
                Act::Asks(wanted) => {
                    turn.out.push(Out::Asks(pod, wanted));
                }
                Act::Writes(change, sent) => {
                    (runner.sent, runner.is_busy) = (Some(sent), true);
                    runner.writes.send(&shown.machine);
                    let session = runner.session;
                    let patch = driver::patch(&shown.machine, change);
                    let looked = Box::new(shown.machine.clone());
                    turn.met.note("writes of agents");
                    self.ask(turn, Call::Patch { looked, patch }, Task::Write { pod, session });
                }
            }
        }
    }

    /// Objects are read whose last write has an outcome that is not known.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        let mut reads = Vec::new();
        for (pod, runner) in &mut self.runners {
            if runner.writes.are_to_be_settled(turn.now) && !runner.is_busy {
                runner.is_busy = true;
                reads.push((pod.clone(), runner.session, runner.object.clone()));
            }
        }
        for (pod, session, object) in reads {
            self.ask(turn, Call::ReadObject(object), Task::Settle { pod, session });
        }
    }
}

// === impl Runner ===

impl Runner {
    pub(super) fn of(object: VmName, uid: String, session: u64) -> Self {
        Self {
            object,
            uid,
            session,
            leased_until: Moment::default(),
            writes: Writes::default(),
            sent: None,
            is_busy: false,
            asks_at: Moment::default(),
        }
    }

    /// Nothing that it did can take effect any more.
    pub(super) const fn is_quiet(&self) -> bool {
        self.sent.is_none() && !self.is_busy
    }

    /// A write was answered, or was not.
    pub(super) fn written(&mut self, turn: &mut Turn<'_>, answer: Result<i64, NoSuccess>) {
        self.is_busy = false;
        match self.writes.answered(turn.now, answer) {
            Ok(()) => self.sent = None,
            Err(Unwritten::Refused) => {
                turn.met.note("writes of agents that were refused");
                self.sent = None;
            }
            Err(Unwritten::Unknown) => turn.met.note("writes of agents whose outcome is not known"),
        }
    }

    /// The object was read, to learn what became of a write.
    pub(super) fn settled(&mut self, met: &mut Met, answer: Result<i64, NoSuccess>) {
        self.is_busy = false;
        if let Ok(generation) = answer {
            met.note("lost writes of agents that a read settled");
            self.writes.settled(generation);
            self.sent = None;
        }
    }

    /// What its look at the object leads to. It gives back before it asks for less, and takes what it was permitted.
    fn plan(
        &mut self,
        (now, world): (Moment, Moment),
        machine: &Machine,
        pod: &VmName,
        scaler: &Agent,
    ) -> Option<Act> {
        driver::runs(machine, &pod.name).ok()?;
        // A watch that does not show the last write is behind.
        if self.is_busy || !self.writes.are_shown(machine) {
            return None;
        }
        let (seen, can) = (self.writes.seen(machine).ok()?, driver::capabilities(machine).ok()?);
        let has = seen.upper().max(self.sent.unwrap_or_default());
        let goal = scaler.goal.max(can.min).min(can.max);
        if let (RunState::Running, None) = (seen.state, self.sent)
            && let Some(act) = write(machine, goal, scaler.permit.unwrap_or_default())
        {
            return Some(act);
        }
        let is_due = now >= self.asks_at && !scaler.waits(world);
        let wanted = if scaler.permit.is_some() { goal.max(has) } else { has };
        is_due.then_some(Act::Asks(wanted))
    }
}

/// The next write towards the goal, within the permit: less at once, more as far as it goes.
fn write(machine: &Machine, goal: Resources, permit: Resources) -> Option<Act> {
    let used = machine.sizes.used;
    let to = goal.min(permit.max(used));
    let to = Resources { mem: to.mem.round_down(VmInfo::DEFAULT_MEMORY_SLOT), ..to };
    let (resize, next) = if to.cpu != used.cpu {
        (Resize::Limit(Some(to.cpu)), Resources { cpu: to.cpu, ..used })
    } else if to.mem != used.mem {
        (Resize::Memory(to.mem), Resources { mem: to.mem, ..used })
    } else {
        return None;
    };
    // What is given up may be had until that has taken effect.
    Some(Act::Writes(driver::change(machine, resize).ok()?, next.max(used)))
}
