//! The plugin's side: what the books hold for this VM, as far as we know.
//!
//! A request below what is held is the news that it was given back, and the books may act on
//! it whether or not the answer reaches us. So from the moment a request is sent, the permit we
//! rely on is no more than what it names.

use crate::rest::Jitter;
use std::time::Duration;
use windlass_protocol::timing::ASK_EVERY;
use windlass_protocol::{Moment, Resources};

/// After less than was asked for, it is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// What the plugin says of a move holds for this long, and is then looked into: a plugin of the
/// reference says it once, and not when the move came to nothing.
const STAYS_FOR: Duration = Duration::from_secs(30);
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
    /// The VM is about to be moved, and keeps its size until then.
    stays_until: Option<Moment>,
    /// Somebody else may have asked for more, and the VM was not seen since.
    pub(super) is_blind: bool,
}

// === impl Permit ===

impl Permit {
    pub(crate) fn known(&self) -> Option<Resources> {
        self.known
    }

    /// Nobody asks any more, so the books may hold less by the time somebody does. A VM that is to be
    /// moved is moved whoever asks.
    pub(super) fn forget(&mut self) {
        (self.known, self.settled) = (None, None);
    }

    /// Somebody else has asked: nothing is said to the books before the VM was seen.
    pub(super) fn waits_for_a_look(&mut self) {
        self.is_blind = true;
    }

    /// The VM was seen.
    pub(super) fn sees(&mut self) {
        self.is_blind = false;
    }

    /// The plugin has said that the VM is about to be moved.
    pub(super) fn stays(&mut self, now: Moment) {
        self.stays_until = Some(now.after(STAYS_FOR));
    }

    /// Until when the VM keeps its size, if it does.
    pub(super) fn stays_until(&self, now: Moment) -> Option<Moment> {
        self.stays_until.filter(|until| now < *until)
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
    pub(super) fn due(&self, ceiling: Resources) -> Moment {
        if self.settled == Some(ceiling) {
            return self.next_at;
        }
        self.answered_at.map_or(Moment::default(), |at| at.after(GAP))
    }
}
