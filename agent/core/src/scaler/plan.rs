//! What to do now, and when to ask again: each part adds its own.

use super::Scaler;
use super::informant::{Circumstances, SizeMessage};
use super::sizing::Sizing;
use crate::in_flight::Plan;
use crate::resize_outcomes::Aim;
use windlass_protocol::timing::LOOK_EVERY;
use windlass_protocol::{Moment, Resize};

// === impl Scaler ===

impl Scaler {
    /// What to do now. Pure: said twice it is the same.
    pub fn plan(&self, now: Moment) -> Plan {
        let target = &self.target_at(now);
        let (acts, executes) = (self.acts(now), self.size.run_state().executes());
        let sizing = Sizing::new(self, now, target);
        let mut plan = Plan::default();

        self.signals.plan(&mut plan, now, executes);

        let resizes = self.resizes(now, sizing.as_ref());
        self.hypervisor.plan(&mut plan, now, &self.size, resizes.into_iter());

        let lifts = self.is_lifting(now);
        let asks = acts && (lifts || !self.orders.observes());
        let ceiling = asks.then(|| self.ceiling(now, target)).flatten();
        self.permit.plan(&mut plan, now, ceiling, self.unit_in_grain());

        let speaks = acts && self.hypervisor.is_fresh() && !self.is_held(now);
        let size = sizing.filter(|_| speaks).and_then(|sizing| sizing.message());
        // A guest that is about to be released hears first what it has.
        let has_news = matches!(size, Some((at, SizeMessage::Up(_))) if at <= now);
        let goes = self.orders.releases()
            && self.is_where_released()
            && !self.size.is_moving()
            && !has_news;
        let circumstances = Circumstances {
            leaves: !lifts && (goes || self.orders.observes()),
            quiet: self.is_quiet(),
            executes,
            seen: self.size.seen().is_some(),
            ran_since: self.signals.ran_since(),
            size,
        };
        self.informant.plan(&mut plan, now, &circumstances);

        let news = size.filter(|_| self.orders.releases()).map(|(at, _)| at);
        let ends = [target.until, self.size.sees_until(), news, self.lifts_until()];
        for at in self.guest.deadlines().chain(ends.into_iter().flatten()) {
            plan.wake(now, at);
        }
        plan
    }

    /// What to ask the hypervisor for, the most important first.
    pub(super) fn resizes(&self, now: Moment, sizing: Option<&Sizing<'_>>) -> Vec<(Aim, Resize)> {
        // Not even a call-off: what the guest had agreed to return goes on leaving while it is
        // migrated, and counts until it has left.
        if self.informant.session.is_suspended() || !self.size.run_state().may_resize() {
            return Vec::new();
        }
        let lift = self.lift(now).map(|resize| (Aim::Grow, resize));
        let calls_off = self.calling_off(now);
        if self.orders.observes() || !self.acts(now) {
            // An agent that begins to watch, or may not act, takes nothing more: what it began to take
            // it calls off, by what it has just seen.
            let recent = |at: Moment| now.since(at) < LOOK_EVERY;
            let ours = calls_off.filter(|_| {
                self.hypervisor.outcomes().is_taking_memory()
                    && self.size.seen_at().is_some_and(recent)
            });
            return ours.map(|resize| (Aim::CallOff, resize)).into_iter().chain(lift).collect();
        }
        if let Some(lift) = lift {
            return vec![lift];
        }
        sizing.map_or(Vec::new(), |sizing| sizing.resizes(calls_off))
    }
}
