//! The hypervisor: what it can do, whether what was seen of it is fresh, and what it is asked for.
//!
//! Looks come first: nothing is resized by what was seen before the last resize, restart, connection,
//! registration or notice. What was seen is in [`SizeRange`]: the guest's reports count there, too.

use crate::backoff::Jitter;
use crate::event::Action;
use crate::in_flight::{InFlight, Plan};
use crate::resize_outcomes::{Aim, ResizeOutcomes, Tally};
use crate::size_range::SizeRange;
use std::time::Duration;
use windlass_protocol::timing::{BLIND_AFTER, CALL_WAITS, LOOK_EVERY};
use windlass_protocol::{Bytes, Capabilities, Moment, Promises, Resize, Seen};

/// What the host keeps for itself when a VM grows, whatever the books say.
const HOST_RESERVE: Bytes = Bytes::from_mib(128);

/// The hypervisor of one VM, and the host's memory that it takes from.
#[derive(Clone, Debug)]
pub(super) struct Hypervisor {
    /// What the driver can do, and the same with the VM as it was seen last.
    attached: Option<Capabilities>,
    can: Option<Capabilities>,
    sight: Sight,
    /// From when on a look shows what became of the last resize; `None` where each look does.
    settles_at: Option<Moment>,
    /// Whether the look under way, or the last one, began after that.
    look_settles: bool,
    /// Since when the agent sees the hypervisor again, where it did not for so long that calls of this
    /// session may have waited.
    sees_again_since: Option<Moment>,
    outcomes: ResizeOutcomes,
    tally: Tally,
    host_available: Option<Bytes>,
    in_flight: InFlight,
}

/// How old what was seen of the hypervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// From after the last resize, restart, connection, registration and notice.
    Fresh,
    /// From before one of them: nothing is resized, and no size spoken of, before a look.
    Due,
    /// The same, and a look is under way that was sent after it.
    Looking,
}

// === impl Hypervisor ===

impl Hypervisor {
    pub(super) fn new() -> Self {
        Self {
            attached: None,
            can: None,
            sight: Sight::Due,
            settles_at: None,
            look_settles: true,
            sees_again_since: None,
            outcomes: ResizeOutcomes::new(),
            tally: Tally::default(),
            host_available: None,
            in_flight: InFlight::new(Duration::from_millis(500), Duration::from_secs(5)),
        }
    }

    /// Looks when that is due, or asks for the resize that is due first; `resizes`: what to ask for,
    /// the most important first.
    pub(super) fn plan(
        &self,
        plan: &mut Plan,
        now: Moment,
        size: &SizeRange,
        resizes: impl Iterator<Item = (Aim, Resize)>,
    ) {
        plan.offer(now, &self.in_flight, self.due(size, resizes));
        for at in self.outcomes.deadlines() {
            plan.wake(now, at);
        }
    }

    fn due(
        &self,
        size: &SizeRange,
        resizes: impl Iterator<Item = (Aim, Resize)>,
    ) -> Option<(Moment, Action)> {
        let Promises { lag, look_again, .. } = self.can?.promises;
        let soonest = lag.saturating_add(look_again);
        let Some(seen_at) = size.seen_at().filter(|_| self.is_fresh()) else {
            // A look that comes before a resize settles says no more than that the VM is there.
            let unsettled = self.settles_at.zip(size.seen_at());
            let at = unsettled.map(|(settles, seen)| settles.min(seen.after(soonest)));
            return Some((at.unwrap_or_default(), Action::Look));
        };
        let wait = if size.is_moving() { soonest } else { LOOK_EVERY.max(soonest) };
        let look = (seen_at.after(wait), Action::Look);
        resizes
            .map(|(aim, resize)| {
                let backoff = self.outcomes.backoff(aim, resize).ends();
                (backoff.unwrap_or_default(), Action::Resize(resize))
            })
            .chain([look])
            .min_by_key(|(at, _)| *at)
    }

    /// What it can do with the VM as it was seen last; `None` before it was attached to.
    pub(super) const fn can(&self) -> Option<&Capabilities> {
        self.can.as_ref()
    }

    /// Whether its driver can set a limit of the host.
    pub(super) fn sets_limits(&self) -> bool {
        self.attached.is_some_and(|can| can.limit_step.is_some())
    }

    /// Whether what was seen is from after the last resize, restart and notice.
    pub(super) fn is_fresh(&self) -> bool {
        self.sight == Sight::Fresh
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.busy().is_some()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.in_flight.failures() > 1
    }

    pub(super) fn silent_since(&self) -> Option<Moment> {
        self.in_flight.silent_since()
    }

    pub(super) const fn outcomes(&self) -> &ResizeOutcomes {
        &self.outcomes
    }

    pub(super) fn host_available(&self) -> Option<Bytes> {
        self.host_available
    }

    /// Whether the host itself has the memory that growth to `wanted` would take.
    pub(super) fn host_has_room_for(&self, wanted: Bytes, upper: Bytes) -> bool {
        let Some(available) = self.host_available else { return true };
        let needed = wanted.saturating_sub(upper);
        needed.is_zero() || available >= needed.saturating_add(HOST_RESERVE)
    }

    /// Whether a call that is answered now may be an old one: the agent did not run, or has run again for
    /// less time than an informant waits for an answer. A session that began since has no old calls.
    pub(super) fn may_have_waited(&self, now: Moment, size: &SizeRange) -> bool {
        let blind = size.sees_until().is_some_and(|until| until <= now);
        blind || self.sees_again_since.is_some_and(|since| now.since(since) < CALL_WAITS)
    }

    pub(super) fn attached(&mut self, can: Capabilities) {
        (self.attached, self.can) = (Some(can), Some(can));
        self.forget_outcomes();
    }

    /// Another machine may be there: what was tried before says nothing of it.
    pub(super) fn forget_outcomes(&mut self) {
        self.outcomes = ResizeOutcomes::new();
        self.must_look();
    }

    /// What was seen before this is old: a look that is under way says nothing of it.
    pub(super) fn must_look(&mut self) {
        self.sight = Sight::Due;
    }

    pub(super) fn host_has(&mut self, available: Option<Bytes>) {
        self.host_available = available;
    }

    /// A session has begun: its calls cannot be older than that.
    pub(super) fn session_begins(&mut self) {
        self.sees_again_since = None;
    }

    pub(super) fn look_sent(&mut self, now: Moment) {
        self.in_flight.sent(Action::Look);
        self.look_settles = self.settles_at.is_none_or(|at| at <= now);
        self.sight = match self.sight {
            Sight::Fresh => Sight::Fresh,
            Sight::Due | Sight::Looking => Sight::Looking,
        };
    }

    pub(super) fn resize_sent(&mut self, aim: Aim, resize: Resize) {
        self.in_flight.sent(Action::Resize(resize));
        self.outcomes.sent(aim, resize);
        self.must_look();
    }

    /// An answer came: the action that it answers. That a resize was taken up is not that it had an
    /// effect.
    pub(super) fn answered(&mut self, now: Moment) -> Option<Action> {
        let action = self.in_flight.answered();
        self.ended(now, action);
        action
    }

    pub(super) fn failed(&mut self, now: Moment, jitter: &mut Jitter) {
        let action = self.in_flight.failed(now, jitter);
        self.ended(now, action);
    }

    /// What a resize that has ended asked for is there some time after that, or never.
    fn ended(&mut self, now: Moment, action: Option<Action>) {
        if let (Some(Action::Resize(_)), Some(can)) = (action, self.can) {
            let wait = can.promises.settles_within;
            self.settles_at = (!wait.is_zero()).then(|| now.after(wait));
        }
    }

    /// Of which moment an answer tells that comes now.
    pub(super) fn tells_of(&self, now: Moment) -> Moment {
        let lag = self.can.map_or(Duration::ZERO, |can| can.promises.lag);
        now.before(lag)
    }

    pub(super) const fn look_settles(&self) -> bool {
        self.look_settles
    }

    /// A look was answered, after the agent had seen nothing for `unseen`. `settled`: it shows what
    /// became of the last resize.
    pub(super) fn looked(&mut self, now: Moment, seen: Seen, unseen: Duration, settled: bool) {
        self.can = self.attached.map(|can| can.with(seen));
        if unseen > BLIND_AFTER {
            self.sees_again_since = Some(now);
        }
        self.sight = match self.sight {
            Sight::Fresh | Sight::Looking if settled => Sight::Fresh,
            Sight::Fresh | Sight::Looking | Sight::Due => Sight::Due,
        };
    }

    /// Judges resizes by what is there. Says whether memory that was asked back is gone.
    pub(super) fn judge(&mut self, now: Moment, seen: Seen, jitter: &mut Jitter) -> bool {
        self.outcomes.see(now, seen, jitter, &mut self.tally)
    }

    pub(super) fn drain_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{START, capabilities, seen, size};
    use super::*;

    #[test]
    fn a_look_that_left_before_a_resize_says_nothing_of_it() {
        let mut hypervisor = Hypervisor::new();
        let mut range = SizeRange::default();
        assert_eq!(asks(&hypervisor, &range), [], "it is not connected");
        hypervisor.attached(capabilities());
        assert_eq!(asks(&hypervisor, &range), [Action::Look]);
        hypervisor.look_sent(START);
        hypervisor.must_look();
        assert_eq!(hypervisor.answered(START), Some(Action::Look));
        hypervisor.looked(START, seen(2), Duration::ZERO, true);
        range.see(START, seen(2), true);
        assert!(!hypervisor.is_fresh());
        assert_eq!(asks(&hypervisor, &range), [Action::Look], "nothing is resized before that");
        hypervisor.look_sent(START);
        hypervisor.answered(START);
        hypervisor.looked(START, seen(2), Duration::ZERO, true);
        assert_eq!(asks(&hypervisor, &range), [Action::Resize(GROWTH.1)]);
    }

    #[test]
    fn growth_leaves_the_host_its_reserve() {
        let mut hypervisor = Hypervisor::new();
        let has_room =
            |hypervisor: &Hypervisor| hypervisor.host_has_room_for(size(2).mem, size(1).mem);
        assert!(has_room(&hypervisor), "it is not known");
        hypervisor.host_has(Some(size(1).mem));
        assert!(!has_room(&hypervisor));
        hypervisor.host_has(Some(size(1).mem.saturating_add(HOST_RESERVE)));
        assert!(has_room(&hypervisor));
    }

    const GROWTH: (Aim, Resize) = (Aim::Grow, Resize::Memory(Bytes::from_gib(3)));

    fn asks(hypervisor: &Hypervisor, size: &SizeRange) -> Vec<Action> {
        let mut plan = Plan::default();
        hypervisor.plan(&mut plan, START, size, [GROWTH].into_iter());
        plan.actions
    }
}
