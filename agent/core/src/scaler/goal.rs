//! What the VM should have: what its signals call for after a rest, or what a person ordered.

use super::Scaler;
use super::status::STUCK_AFTER;
use crate::event::{Action, Order};
use crate::trials::Aim;
use windlass_protocol::timing::FIGURES_LAST;
use windlass_protocol::{
    Capabilities, Clip, ComputeUnit, Moment, Reason, Resize, Resources, Signal, Waiting,
};
use windlass_scaling::rest::Move;
use windlass_scaling::{Goal, Inputs, Rested};

// === impl Scaler ===

impl Scaler {
    /// The step that this VM moves in.
    pub fn unit(&self) -> ComputeUnit {
        self.settings.unit.of(&self.info, self.can.as_ref())
    }

    /// Whether the VM grew and shrank again and again in the last hour.
    pub fn is_flapping(&self, now: Moment) -> bool {
        self.rest.flapping(now, self.info.scale_down).is_some()
    }

    /// What the VM should have. `None` before it was seen.
    pub(super) fn goal(&self, now: Moment) -> Option<Goal> {
        let (can, has) = (self.can.as_ref()?, self.using()?);
        let mut goal = self.rested(now)?.goal;
        if let Some(size) = self.ordered_size(now, has, can) {
            goal.size = size;
            let runs = self.run_state().may_resize();
            let signal = if runs { Signal::Order } else { Signal::Stopped };
            goal.reason = Reason { signal, cpu: None, mem: None };
        }
        Some(goal)
    }

    /// What the signals call for, after its rest.
    fn rested(&self, now: Moment) -> Option<Rested> {
        let inputs = self.inputs(now)?;
        Some(self.rest.rested(now, &inputs, self.permit.known()))
    }

    /// Whether load calls for more than the VM has, and no figure says yet whether that is the work
    /// of returning memory.
    pub(super) fn is_unclear(&self, now: Moment) -> bool {
        self.rested(now).is_some_and(|rested| rested.unclear)
    }

    /// Whether the guest works to return memory. What is stuck is no work.
    pub(super) fn memory_leaves(&self, now: Moment) -> bool {
        let stuck = |since: Moment| now.since(since) >= STUCK_AFTER;
        let moves = self.holding.unplugging().is_none_or(|(_, since)| !stuck(since));
        self.holding.is_giving() && (self.holding.is_open() || moves)
    }

    /// When the goal may become another by time alone.
    pub(super) fn rests(&self, now: Moment) -> impl Iterator<Item = Moment> {
        self.rest.deadlines(now, &self.info)
    }

    /// What keeps the goal from what the signals call for. A person's order passes by that.
    pub(super) fn waiting_to_rest(&self, now: Moment, waiting: &mut Vec<Waiting>) {
        let follows = self.order == Order::Follow && !self.is_held(now);
        let Some(rested) = self.rested(now).filter(|_| follows) else { return };
        if let Some(held) = rested.held {
            waiting.push(Waiting::Holding { goal: held.size, until: held.until });
        }
        if let Some(settling) = rested.settling {
            waiting.push(Waiting::Settling { until: settling.until });
        }
        if let Some(flapping) = self.rest.flapping(now, self.info.scale_down) {
            let reversals = u32::try_from(flapping.reversals).unwrap_or(u32::MAX);
            waiting.push(Waiting::Flapping { reversals, hold: flapping.hold });
        }
    }

    /// Remembers what the signals call for.
    pub(super) fn note_goal(&mut self, now: Moment) {
        let mut rest = std::mem::take(&mut self.rest);
        if let Some(inputs) = self.inputs(now) {
            rest.note(now, &inputs);
        }
        self.rest = rest;
    }

    /// Remembers that the VM is about to grow, or to lose what it has.
    pub(super) fn note_move(&mut self, now: Moment, action: Action) {
        if self.order != Order::Follow {
            return;
        }
        match action {
            Action::Resize(resize) => {
                let calls_off = self.calling_off(now) == Some(resize);
                match (resize, self.aim(resize, calls_off)) {
                    (Resize::Cpu(_), Aim::Grow) => self.rest.cpu_moved(now, Move::Grew),
                    // Fewer vCPUs count when the guest agrees to them: those that go are idle.
                    (Resize::Cpu(_), Aim::Shrink) | (_, Aim::CallOff) => {}
                    (Resize::Memory(_), Aim::Grow) => self.rest.memory_moved(now, Move::Grew),
                    (Resize::Memory(_), Aim::Shrink) => {
                        let [_, bounded] = self.bounded(now);
                        if !bounded {
                            self.rest.memory_moved(now, Move::Shrank);
                        }
                        self.rest.memory_leaves(now, true);
                    }
                }
            }
            Action::Upscale(_, _, size) if self.using().is_some_and(|has| has.cpu < size.cpu) => {
                self.rest.cpu_moved(now, Move::Grew);
            }
            Action::Upscale(..)
            | Action::Look
            | Action::Measure
            | Action::AskPlugin(_)
            | Action::Register(_)
            | Action::CheckHealth(_)
            | Action::Downscale(..)
            | Action::Unregister(_) => {}
        }
    }

    /// Remembers that the guest agreed to use fewer vCPUs.
    pub(super) fn note_parking(&mut self, now: Moment, target: Resources, has: Resources) {
        let [bounded, _] = self.bounded(now);
        if target.cpu < has.cpu && self.order == Order::Follow && !bounded {
            self.rest.cpu_moved(now, Move::Shrank);
        }
    }

    /// Whether the maximum keeps the goal down, on each axis: what a person's lower maximum takes is no
    /// flapping.
    fn bounded(&self, now: Moment) -> [bool; 2] {
        let reason = self.goal(now).map(|goal| goal.reason);
        let clips = reason.map_or([None; 2], |reason| [reason.cpu, reason.mem]);
        clips.map(|clip| clip == Some(Clip::Maximum))
    }

    fn inputs(&self, now: Moment) -> Option<Inputs<'_>> {
        Some(Inputs {
            info: &self.info,
            unit: self.unit(),
            can: self.can.as_ref()?,
            sample: self.sample.as_ref().filter(|sample| now.since(sample.at) < FIGURES_LAST),
            has: self.using()?,
            urgency: self.guest.urgency(now),
        })
    }

    fn ordered_size(&self, now: Moment, has: Resources, can: &Capabilities) -> Option<Resources> {
        match self.order {
            _ if self.is_held(now) => Some(has),
            Order::Release(Some(size)) => Some(self.release_size(size, can)),
            Order::Release(None) | Order::Freeze => Some(has),
            Order::Follow => None,
        }
    }
}
