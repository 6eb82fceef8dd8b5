//! Whether this agent acts, and what begins and ends with that.
//!
//! Of several agents of one VM one acts: it asks for permits and sizes, and speaks to the guest
//! about them. Which, the informant says; for how long, the session's lease.

use super::Scaler;
use crate::event::{Action, Order};
use std::time::Duration;
use windlass_protocol::timing::{BLIND_AFTER, CALL_WAITS, INFORMANT_GONE, PERMIT_OUTLIVES_SIGHT};
use windlass_protocol::{InformantVersion, Moment};

// === impl Scaler ===

impl Scaler {
    /// Whether nothing that was asked of plugin, hypervisor or guest may still take effect: what the
    /// answer to `/suspend`, and that there is no such session, wait for.
    pub fn is_quiet(&self) -> bool {
        self.lines.plugin.busy().is_none()
            && self.lines.hypervisor.busy().is_none()
            && !matches!(
                self.lines.informant.busy(),
                Some(Action::Downscale(..) | Action::Upscale(..))
            )
            && !self.holding.is_open()
    }

    /// What is spoken with the informant, or was in the last session.
    pub fn version(&self) -> InformantVersion {
        self.session.version()
    }

    /// When the informant last said anything; at first, when the agent began.
    pub fn heard_at(&self) -> Moment {
        self.session.heard_at()
    }

    /// Whether it may ask for permits and sizes: no other agent does.
    pub fn acts(&self, now: Moment) -> bool {
        let sees = self.sees_until().is_some_and(|until| now < until);
        sees && self.session.acts(now) || self.acts_alone(now)
    }

    /// Until when no restart of the guest can have been missed, as far as is known now.
    pub(super) fn sees_until(&self) -> Option<Moment> {
        Some(self.holding.seen_at()?.after(BLIND_AFTER))
    }

    /// The hypervisor is seen, perhaps after a long time: it did not answer, or the agent did not run.
    pub(super) fn sees_after(&mut self, now: Moment) {
        let unseen = self.holding.seen_at().map_or(Duration::ZERO, |at| now.since(at));
        if unseen > BLIND_AFTER {
            self.sees_again_since = Some(now);
        }
        if unseen >= PERMIT_OUTLIVES_SIGHT {
            self.rest_from_asking();
        }
    }

    /// Whether a call that is answered now may be an old one: the agent did not run, or does so for
    /// less time than an informant waits for its answer. In a session that began since there is none.
    pub(super) fn may_have_waited(&self, now: Moment) -> bool {
        let blind = self.sees_until().is_some_and(|until| until <= now);
        blind || self.sees_again_since.is_some_and(|since| now.since(since) < CALL_WAITS)
    }

    /// Whatever was agreed in the session ends with it.
    pub(super) fn end_session(&mut self) {
        self.session.end();
        self.lines.informant.disregard();
        self.stop_counting();
    }

    /// It has taken its leave. A VM that it lets go stays as it left it.
    pub(super) fn has_left(&mut self) {
        let holding = self.holding.clone();
        self.end_session();
        if matches!(self.order, Order::Release(_)) {
            self.holding = holding;
        }
    }

    /// Another agent may count from here on: what was allowed, agreed and permitted says nothing
    /// any more, and every plugged vCPU may be in use.
    pub(super) fn stop_counting(&mut self) {
        self.guest.session_ended();
        self.holding.unattended();
        self.rest_from_asking();
    }

    /// It counts, again or for the first time, or is about to: somebody else may have changed
    /// everything, and a guest that restarted unheard has lost memory.
    pub(super) fn count_again(&mut self) {
        self.guest.session_ended();
        self.holding.unattended();
        self.holding.registered();
        self.lines.metrics.disregard();
        self.permit.waits_for_a_look();
        self.must_look();
    }

    /// Whether it acts without a session: this agent never had one, nobody has answered at the
    /// informant's address for so long that there is none, and the guest's figures are somebody
    /// else's. Who had one cannot tell an informant that is gone from one that it is cut off from,
    /// and that lets another agent run.
    fn acts_alone(&self, now: Moment) -> bool {
        let unheard = now.since(self.session.heard_at()) >= INFORMANT_GONE;
        !self.session.has_been() && unheard && self.figures_elsewhere
    }

    /// The plugin is not asked for a while: what it allowed is not relied on after that.
    pub(super) fn rest_from_asking(&mut self) {
        self.permit.forget();
        self.lines.plugin.disregard();
    }
}
