//! What to do now, and when to ask again.

use super::Scaler;
use super::sight::Sight;
use crate::event::{Action, Order};
use crate::plan::Plan;
use crate::trials::Aim;
use std::time::Duration;
use windlass_protocol::timing::{FIGURES_LAST, LOOK_EVERY};
use windlass_protocol::{Capabilities, Mode, Moment, Resize, Resources};
use windlass_scaling::goal;

/// How often the hypervisor is looked at while its figures move, and while they do not.
const LOOK_WHILE_MOVING: Duration = Duration::from_millis(200);
// === impl Scaler ===

impl Scaler {
    /// What to do now. Pure: said twice it is the same.
    pub fn plan(&self, now: Moment) -> Plan {
        let mut plan = Plan::default();
        let executes = self.run_state().executes();
        self.offer(&mut plan, now, executes.then_some((self.measure_at, Action::Measure)));
        self.offer(&mut plan, now, self.for_hypervisor(now));
        let permit = self.permit_due(now);
        self.offer(&mut plan, now, permit);
        self.offer(&mut plan, now, self.for_informant(now));
        let acts = self.session.acts_until().into_iter().chain(self.sees_until());
        let paused = self.info.paused_until;
        let stale = self.sample.as_ref().map(|sample| sample.at.after(FIGURES_LAST));
        let deadlines = self.guest.deadlines().chain(self.trials.deadlines());
        let moved = self.permit.stays_until(now);
        // A guest that is about to be let go hears first what it has.
        let leaves = matches!(self.order, Order::Release(_));
        let news = leaves.then(|| self.sizing(now)).flatten().map(|(at, _)| at);
        let deadlines = deadlines.chain(self.rests(now));
        for deadline in deadlines.chain(paused).chain(stale).chain(moved).chain(news).chain(acts) {
            plan.wake(now, deadline);
        }
        plan
    }

    /// Puts an action into the plan if it is due and its line is free.
    fn offer(&self, plan: &mut Plan, now: Moment, due: Option<(Moment, Action)>) {
        let Some((at, action)) = due else { return };
        let line = self.lines.to(action.peer());
        if line.is_free(now) && at <= now {
            plan.actions.push(action);
        } else if line.busy().is_none() {
            plan.wake(now, at.max(line.free_at().unwrap_or(at)));
        }
    }

    fn for_hypervisor(&self, now: Moment) -> Option<(Moment, Action)> {
        let can = self.can.as_ref()?;
        let Some(seen_at) = self.holding.seen_at().filter(|_| self.sight == Sight::Fresh) else {
            return Some((Moment::default(), Action::Look));
        };
        let wait = if self.holding.is_moving() { LOOK_WHILE_MOVING } else { LOOK_EVERY };
        let look = (seen_at.after(wait), Action::Look);
        self.resizes(now, can)
            .into_iter()
            .flatten()
            .map(|(aim, resize)| {
                let rest = self.trials.rest(aim, resize).ends();
                (rest.unwrap_or_default(), Action::Resize(resize))
            })
            .chain([look])
            .min_by_key(|(at, _)| *at)
    }

    /// What to ask the hypervisor for, the most important first.
    pub(super) fn resizes(&self, now: Moment, can: &Capabilities) -> [Option<(Aim, Resize)>; 5] {
        let calls_off = self.calling_off(now).map(|resize| (Aim::CallOff, resize));
        // Not even a call-off: what the guest had agreed to return goes on leaving while it is
        // migrated, and counts until it has left.
        if self.session.is_suspended() || !self.run_state().may_resize() {
            return [None; 5];
        }
        if self.info.mode == Mode::Observe || !self.acts(now) {
            // Who begins to watch, or may not act, takes nothing more: what it began to take it
            // calls off, by what it has just seen.
            let recent = |at: Moment| now.since(at) < LOOK_EVERY;
            let ours = calls_off.filter(|_| {
                self.trials.is_taking_memory() && self.holding.seen_at().is_some_and(recent)
            });
            return [ours, None, None, None, None];
        }
        let Some(goal) = self.goal(now).map(|goal| goal.size) else { return [None; 5] };
        // To keep all that is there may be growth too: it is a call-off, and rests as one.
        let keeps = calls_off.map(|(_, resize)| resize);
        let growth = self.growth(goal, can).map(|grow| grow.filter(|_| grow != keeps));
        let [memory, cpu] = growth.map(|grow| Some((Aim::Grow, grow?)));
        let [less, fewer] = self.taking(now, goal, can).map(|take| Some((Aim::Shrink, take?)));
        [memory, cpu, less, fewer, calls_off]
    }

    fn for_informant(&self, now: Moment) -> Option<(Moment, Action)> {
        let due_now = Moment::default();
        let leaves = match self.order {
            Order::Release(_) => {
                self.is_where_released() && !self.holding.is_moving() && !self.has_news(now)
            }
            Order::Follow | Order::Freeze => false,
        };
        if leaves || self.info.mode == Mode::Observe {
            let id = self.session.id().filter(|_| self.is_quiet())?;
            return Some((due_now, Action::Unregister(id)));
        }
        if !self.run_state().executes() {
            return None;
        }
        let Some(id) = self.session.id() else {
            self.holding.seen()?;
            return Some((self.session.opens_at(), Action::Register(self.session.next_id())));
        };
        let health = self.session.health_due().map(|at| (at, Action::CheckHealth(id)));
        // Never told that it counts, or nothing heard: a new session may do better.
        let given_up = self.session.gives_up_at(self.runs.since()).filter(|_| self.is_quiet());
        let given_up = given_up.map(|at| (at, Action::Unregister(id)));
        // What lets it act goes before what it does.
        let due = health.filter(|(at, _)| *at <= now);
        if due.is_some() || !self.session.is_active() {
            return due.or_else(|| health.into_iter().chain(given_up).min_by_key(|(at, _)| *at));
        }
        self.sizing(now)
            .map(|(at, sizing)| (at, sizing.action(id, self.session.next_sequence())))
            .into_iter()
            .chain(health)
            .chain(given_up)
            .min_by_key(|(at, _)| *at)
    }

    pub(super) fn release_size(&self, size: Resources, can: &Capabilities) -> Resources {
        let size = size.max(can.min).min(can.max);
        goal::in_grain(size, can, self.info.memory_slot, can.max)
    }

    pub(super) fn is_where_released(&self) -> bool {
        match (self.order, &self.can, self.using()) {
            (Order::Release(None), ..) => true,
            // It is not touched, so it will not get there.
            (Order::Release(Some(_)), ..) if self.info.mode == Mode::Observe => true,
            (Order::Release(Some(size)), Some(can), Some(has)) => {
                self.release_size(size, can) == has
            }
            (Order::Release(Some(_)) | Order::Follow | Order::Freeze, ..) => false,
        }
    }

    /// Whether the guest is about to be told what it may use: nobody else tells it.
    fn has_news(&self, now: Moment) -> bool {
        matches!(self.sizing(now), Some((at, Sizing::Up(_))) if at <= now)
    }

    /// What to say to the guest about its size.
    fn sizing(&self, now: Moment) -> Option<(Moment, Sizing)> {
        let (can, goal) = (self.can.as_ref()?, self.goal(now)?.size);
        if self.sight != Sight::Fresh || self.is_held(now) || !self.acts(now) {
            return None;
        }
        // An `/upscale` ends the consent that a shrink sent at this very moment would rest on.
        let takes = self.taking_memory(now, goal, can).is_some();
        let up = self.news(goal, can).filter(|_| !takes).map(|(at, size)| (at, Sizing::Up(size)));
        let next = self.next_below(now, goal, can);
        let down = next.and_then(|next| Some((self.consent_due(now, next)?, Sizing::Down(next))));
        up.into_iter().chain(down).min_by_key(|(at, _)| *at)
    }
}

/// A message about sizes, before it has an id and a number.
enum Sizing {
    Up(Resources),
    Down(Resources),
}

// === impl Sizing ===

impl Sizing {
    fn action(
        self,
        id: windlass_protocol::AgentId,
        sequence: windlass_protocol::Sequence,
    ) -> Action {
        match self {
            Self::Up(size) => Action::Upscale(id, sequence, size),
            Self::Down(size) => Action::Downscale(id, sequence, size),
        }
    }
}
