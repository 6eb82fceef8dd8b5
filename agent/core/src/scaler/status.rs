//! The state of a VM for people: what it has, should have, and waits for.

use super::Scaler;
use super::sizing::Sizing;
use super::target::Target;
use windlass_protocol::status::{SessionState, VmStatus};
use windlass_protocol::{Moment, Resources, Signals, VmInfo, Waiting};

// === impl Scaler ===

impl Scaler {
    /// The state of the VM at this moment.
    pub fn status(&self, now: Moment) -> VmStatus {
        let (goal, waiting) = (self.target_at(now).goal, self.waiting(now));
        let is_silent = waiting.contains(&Waiting::HypervisorLost);
        VmStatus {
            seen: self.size.seen(),
            online: self.size.online(),
            upper: self.upper(),
            signals: goal.map(|goal| goal.signals).unwrap_or_default(),
            goal: goal.map(|goal| goal.size),
            reason: goal.map(|goal| goal.reason),
            permit: self.permit.known(),
            consent: self.guest.consent(now),
            session: self.informant.session.status(),
            waiting,
            silent_since: self.hypervisor.silent_since().filter(|_| is_silent),
            unit: Some(self.unit()),
            ..Self::unseen_status(self.orders.info())
        }
    }

    /// The state of a VM that is there and was never seen: all that its declaration says, and that its
    /// hypervisor does not answer.
    pub fn unseen_status(info: &VmInfo) -> VmStatus {
        VmStatus {
            name: info.name.clone(),
            mode: info.mode,
            priority: info.priority,
            bounds: info.bounds,
            seen: None,
            online: None,
            upper: None,
            signals: Signals::default(),
            goal: None,
            reason: None,
            permit: None,
            consent: None,
            session: SessionState::Absent,
            waiting: vec![Waiting::HypervisorLost],
            silent_since: None,
            unit: None,
            window: Some(info.load_window),
            target: Some(info.target),
            limit_counts: None,
        }
    }

    /// What the VM waits for, or why it does not move; never empty.
    pub fn waiting(&self, now: Moment) -> Vec<Waiting> {
        let target = &self.target_at(now);
        // The informant lets the agent act, but the agent does not see the hypervisor.
        let blind = self.informant.session.is_leased(now) && !self.acts(now);
        if self.hypervisor.is_lost() || blind {
            return vec![Waiting::HypervisorLost];
        }
        let Some(sizing) = Sizing::new(self, now, target) else { return vec![Waiting::Hypervisor] };
        let Sizing { has, goal, .. } = sizing;
        let mut waiting = self.standing_still(now);
        if !self.orders.observes() && self.size.run_state().may_resize() {
            self.waiting_to_grow(now, &sizing, &mut waiting);
            self.waiting_to_shrink(now, goal, has, &mut waiting);
            self.waiting_to_rest(now, target, &mut waiting);
            if let Some(until) = self.backed_off(now, &sizing) {
                waiting.push(Waiting::NoEffect { until });
            }
        }
        if waiting.is_empty() {
            let moves = goal != has || self.size.is_moving();
            waiting.push(if moves { Waiting::Hypervisor } else { Waiting::AtGoal });
        }
        waiting
    }

    /// Until when nothing is asked of the hypervisor that should be, because it had no effect.
    fn backed_off(&self, now: Moment, sizing: &Sizing<'_>) -> Option<Moment> {
        let outcomes = self.hypervisor.outcomes();
        let due = self.resizes(now, Some(sizing)).into_iter();
        let shrinks = sizing.goal.mem < sizing.has.mem;
        let kept = outcomes.memory_stays(now).filter(|_| shrinks);
        due.filter_map(|(aim, resize)| outcomes.backoff(aim, resize).lasts(now)).chain(kept).min()
    }

    /// Reasons that hold for the VM as a whole.
    fn standing_still(&self, now: Moment) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        if self.orders.observes() {
            waiting.push(Waiting::Observing);
        }
        if self.orders.is_frozen() {
            waiting.push(Waiting::Frozen);
        } else if let Some(until) = self.orders.paused_until(now) {
            waiting.push(Waiting::Paused { until });
        } else if self.permit.stays_until(now).is_some() {
            waiting.push(Waiting::Move);
        }
        if self.size.is_rebooting() {
            waiting.push(Waiting::Reboot);
        }
        let state = self.size.run_state();
        if state.may_resize() {
            waiting.extend(self.signals.missing(now, self.orders.info().load_window));
        } else {
            waiting.push(Waiting::Stopped { state });
        }
        waiting
    }

    fn waiting_to_grow(&self, now: Moment, sizing: &Sizing<'_>, waiting: &mut Vec<Waiting>) {
        let Sizing { has, goal, .. } = *sizing;
        if has.covers(goal) {
            return;
        }
        if !self.acts(now) {
            // The plugin is not asked.
            waiting.push(Waiting::Session);
            return;
        }
        if self.permit.known().is_none() || self.permit.is_failing() {
            waiting.push(Waiting::Plugin);
        }
        let Some(permitted) = sizing.permitted() else { return };
        // Whether there is room for a goal that is new, the next answer says.
        if !permitted.covers(goal) && self.permit.is_short() {
            let permit = self.permit.known().unwrap_or(Resources::ZERO);
            waiting.push(Waiting::Room { wanted: goal, permit });
        }
        if !sizing.host_has_room_for(permitted) {
            let available = self.hypervisor.host_available().unwrap_or_default();
            waiting.push(Waiting::HostMemory { available });
        }
        let plugged = self.size.seen().map(|seen| self.size.limited(seen.plugged));
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
        if let Some((left, since)) = self.size.unplugging() {
            waiting.push(match self.is_stuck(now, since) {
                true => Waiting::StuckUnplug { left },
                false => Waiting::Unplug { left },
            });
        }
        if goal.covers(has) {
            return;
        }
        if !self.informant.session.is_active() {
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
        if self.informant.is_asked_to_shrink() {
            waiting.push(Waiting::Consent);
        }
    }

    /// What keeps the goal from what the signals call for. A person's order passes by that.
    fn waiting_to_rest(&self, now: Moment, target: &Target, waiting: &mut Vec<Waiting>) {
        let follows = self.orders.follows_load() && !self.is_held(now);
        let Some(stabilized) = target.stabilized.filter(|_| follows) else { return };
        if let Some(held) = stabilized.held {
            waiting.push(Waiting::Holding { goal: held.size, until: held.until });
        }
        if let Some(settling) = stabilized.settling {
            waiting.push(Waiting::Settling { until: settling.until });
        }
        if let Some(flapping) = self.flapping(now) {
            let reversals = u32::try_from(flapping.reversals).unwrap_or(u32::MAX);
            waiting.push(Waiting::Flapping { reversals, hold: flapping.hold });
        }
    }
}
