//! The state of a VM for people: what it has, should have, and waits for.

use super::Scaler;
use crate::event::Action;
use std::time::Duration;
use windlass_protocol::status::VmStatus;
use windlass_protocol::{Capabilities, Mode, Moment, Resources, Waiting};

/// Memory that has not moved for this long, though the guest agreed to give it back, is stuck.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(15);

// === impl Scaler ===

impl Scaler {
    /// The state of the VM at this moment.
    pub fn status(&self, now: Moment) -> VmStatus {
        let (goal, waiting) = (self.goal(now), self.waiting(now));
        let is_silent = waiting.contains(&Waiting::HypervisorLost);
        VmStatus {
            name: self.info.name.clone(),
            mode: self.info.mode,
            priority: self.info.priority,
            bounds: self.info.bounds,
            seen: self.holding.seen(),
            online: self.holding.online(),
            upper: self.upper(),
            signals: goal.map(|goal| goal.signals).unwrap_or_default(),
            goal: goal.map(|goal| goal.size),
            reason: goal.map(|goal| goal.reason),
            permit: self.permit.known(),
            consent: self.guest.consent(now),
            session: self.session.status(),
            waiting,
            silent_since: self.lines.hypervisor.silent_since().filter(|_| is_silent),
            unit: Some(self.unit()),
            window: Some(self.info.load_window),
            target: Some(self.info.target),
        }
    }

    /// What the hypervisor can do with the VM; `None` before it was attached to.
    pub const fn capabilities(&self) -> Option<Capabilities> {
        self.can
    }

    /// What the VM waits for, or why it does not move; never empty.
    pub fn waiting(&self, now: Moment) -> Vec<Waiting> {
        // Who may act, but for what it has not seen.
        if self.hypervisor_is_lost() || self.session.acts(now) && !self.acts(now) {
            return vec![Waiting::HypervisorLost];
        }
        let (Some(can), Some(has), Some(goal)) = (&self.can, self.using(), self.goal(now)) else {
            return vec![Waiting::Hypervisor];
        };
        let mut waiting = self.standing_still(now);
        if self.info.mode == Mode::Act && self.run_state().may_resize() {
            self.waiting_to_grow(now, goal.size, has, can, &mut waiting);
            self.waiting_to_shrink(now, goal.size, has, &mut waiting);
            self.waiting_to_rest(now, &mut waiting);
            if let Some(until) = self.resting(now, goal.size, has, can) {
                waiting.push(Waiting::NoEffect { until });
            }
        }
        if waiting.is_empty() {
            let moves = goal.size != has || self.holding.is_moving();
            waiting.push(if moves { Waiting::Hypervisor } else { Waiting::AtGoal });
        }
        waiting
    }

    /// Whether the hypervisor does not answer.
    pub(super) fn hypervisor_is_lost(&self) -> bool {
        self.lines.hypervisor.failures() > 1
    }

    /// Until when nothing is asked of the hypervisor that should be, because it had no effect.
    fn resting(
        &self,
        now: Moment,
        goal: Resources,
        has: Resources,
        can: &Capabilities,
    ) -> Option<Moment> {
        let due = self.resizes(now, can).into_iter().flatten();
        let kept = self.trials.memory_stays(now).filter(|_| goal.mem < has.mem);
        due.filter_map(|(aim, resize)| self.trials.rest(aim, resize).lasts(now)).chain(kept).min()
    }

    /// Reasons that hold for the VM as a whole.
    fn standing_still(&self, now: Moment) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        if self.info.mode == Mode::Observe {
            waiting.push(Waiting::Observing);
        }
        if self.order == crate::event::Order::Freeze {
            waiting.push(Waiting::Frozen);
        } else if let Some(until) = self.info.paused_until.filter(|until| now < *until) {
            waiting.push(Waiting::Paused { until });
        } else if self.permit.stays_until(now).is_some() {
            waiting.push(Waiting::Move);
        }
        if self.holding.is_rebooting() {
            waiting.push(Waiting::Reboot);
        }
        let state = self.run_state();
        if state.may_resize() {
            waiting.extend(self.waiting_for_figures(now));
        } else {
            waiting.push(Waiting::Stopped { state });
        }
        waiting
    }

    fn waiting_to_grow(
        &self,
        now: Moment,
        goal: Resources,
        has: Resources,
        can: &Capabilities,
        waiting: &mut Vec<Waiting>,
    ) {
        if has.covers(goal) {
            return;
        }
        if !self.acts(now) {
            // The plugin is not asked.
            waiting.push(Waiting::Session);
            return;
        }
        if self.permit.known().is_none() || self.lines.plugin.is_failing() {
            waiting.push(Waiting::Plugin);
        }
        let Some(permitted) = self.permitted(goal, can) else { return };
        if !permitted.covers(goal) {
            let permit = self.permit.known().unwrap_or(Resources::ZERO);
            waiting.push(Waiting::Room { wanted: goal, permit });
        }
        if !self.host_has_room_for(permitted.mem) {
            let available = self.host_available.unwrap_or_default();
            waiting.push(Waiting::HostMemory { available });
        }
        let plugged = self.holding.seen().map(|seen| seen.plugged);
        if plugged.is_some_and(|plugged| plugged >= permitted.cpu) && has.cpu < permitted.cpu {
            waiting.push(Waiting::Guest);
        }
    }

    fn waiting_to_shrink(
        &self,
        now: Moment,
        goal: Resources,
        has: Resources,
        waiting: &mut Vec<Waiting>,
    ) {
        if let Some((left, since)) = self.holding.unplugging() {
            waiting.push(if now.since(since) < STUCK_AFTER {
                Waiting::Unplug { left }
            } else {
                Waiting::StuckUnplug { left }
            });
        }
        if goal.covers(has) {
            return;
        }
        if !self.session.is_active() {
            waiting.push(Waiting::Informant);
        }
        let refused = if goal.cpu < has.cpu {
            self.guest.cpu_refused(now)
        } else {
            self.guest.memory_refused(now)
        };
        if let Some(until) = refused {
            waiting.push(Waiting::Refused { until });
        }
        if matches!(self.lines.informant.busy(), Some(Action::Downscale(..))) {
            waiting.push(Waiting::Consent);
        }
    }
}
