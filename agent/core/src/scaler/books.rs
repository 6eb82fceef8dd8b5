//! The plugin's side: what the books hold for this VM, as far as we know.
//!
//! A request below what is held is the news that it was given back, and the books may act on
//! it whether or not the answer reaches us. So from the moment a request is sent, the permit we
//! rely on is no more than what it names.

use super::Scaler;
use crate::event::Action;
use crate::rest::Jitter;
use std::time::Duration;
use windlass_protocol::{Mode, Moment, Resources};

/// An agent speaks to the plugin at least this often; a claim lives for two of these.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// After less than was asked for, it is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// The least time between an answer and the next request.
const GAP: Duration = Duration::from_millis(250);

/// What the plugin allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Permit {
    /// The books hold at least this for the VM.
    known: Option<Resources>,
    /// What was last asked for, if it was answered.
    settled: Option<Resources>,
    answered_at: Option<Moment>,
    next_at: Moment,
}

// === impl Permit ===

impl Permit {
    pub(crate) fn known(&self) -> Option<Resources> {
        self.known
    }

    /// Nobody asks any more, so the books may hold less by the time somebody does.
    pub(super) fn forget(&mut self) {
        (self.known, self.settled) = (None, None);
    }

    pub(super) fn asked(&mut self, ceiling: Resources) {
        self.known = self.known.map(|known| known.min(ceiling));
        self.settled = None;
    }

    pub(super) fn answered(
        &mut self,
        now: Moment,
        asked: Resources,
        permit: Resources,
        jitter: &mut Jitter,
    ) {
        // More than was asked for was not asked for: it is not used.
        let permit = permit.min(asked);
        self.known = Some(permit);
        self.settled = Some(asked);
        self.answered_at = Some(now);
        let wait = if permit == asked { ASK_EVERY } else { ASK_AGAIN };
        self.next_at = now.after(jitter.around(wait));
    }

    /// When this ceiling is to be asked for.
    fn due(&self, ceiling: Resources) -> Moment {
        if self.settled == Some(ceiling) {
            return self.next_at;
        }
        self.answered_at.map_or(Moment::default(), |at| at.after(GAP))
    }
}

// === impl Scaler ===

impl Scaler {
    /// What to ask the plugin for, and when.
    pub(super) fn permit_due(&self, now: Moment) -> Option<(Moment, Action)> {
        if self.info.mode == Mode::Observe || self.session.is_suspended() {
            return None;
        }
        let ceiling = self.ceiling(now)?;
        Some((self.permit.due(ceiling), Action::AskPlugin(ceiling)))
    }

    /// What the books should cover: what the VM may have, and what it should get.
    pub(super) fn ceiling(&self, now: Moment) -> Option<Resources> {
        let mut ceiling = self.upper()?;
        if let Some(goal) = self.goal(now) {
            ceiling = ceiling.max(goal.size);
        }
        ceiling.mem = ceiling.mem.round_up(self.info.memory_slot);
        Some(ceiling)
    }
}
