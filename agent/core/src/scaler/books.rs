//! The plugin's side: what the books hold for this VM, as far as we know.
//!
//! A request below what is held is the news that it was given back, and the books may act on
//! it whether or not the answer reaches us. So from the moment a request is sent, the permit we
//! rely on is no more than what it names.

use super::Scaler;
use crate::event::{Action, Asking, Failure};
use crate::rest::Jitter;
use std::time::Duration;
use windlass_protocol::{Mode, Moment, Peer, Resources};

/// An agent speaks to the plugin at least this often; a claim lives for two of these.
const ASK_EVERY: Duration = Duration::from_secs(5);
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
    is_blind: bool,
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
        if self.info.mode == Mode::Observe || !self.acts(now) || self.permit.is_blind {
            return None;
        }
        let ceiling = self.ceiling(now)?;
        let asking = Asking {
            version: self.spoken.stated(now),
            resources: ceiling,
            last_permit: self.permit.known(),
            unit: self.unit(),
        };
        Some((self.permit.due(ceiling), Action::AskPlugin(asking)))
    }

    /// Whether this agent may use more than what [the VM may have](Self::upper) by a permit that it has or
    /// asks for, or has yet to see what there is. If not, the books need hold no more than that.
    pub fn counts_on_a_permit(&self) -> bool {
        let permitted = self.permit.known().is_some() || self.lines.plugin.is_heard();
        permitted || self.permit.is_blind
    }

    pub(super) fn plugin_permits(&mut self, now: Moment, asked: Asking, permit: Resources) {
        self.spoken.took(asked.version);
        self.permit.answered(now, asked.resources, permit, &mut self.jitter);
        self.journal.permitted(asked.resources, permit);
    }

    /// Whether the plugin refused every version that is ours, and has taken none since.
    pub fn plugin_takes_no_version(&self) -> bool {
        self.spoken.takes_none()
    }

    /// What a failed request says of the plugin's versions; and whether another is tried at once.
    pub(super) fn tries_another_version(&mut self, peer: Peer, failure: Failure) -> bool {
        let Some(Action::AskPlugin(asked)) = self.lines.to(peer).busy() else { return false };
        match failure {
            Failure::Version => {
                let another = self.spoken.refused(asked.version);
                if another {
                    self.lines.plugin.answered();
                }
                return another;
            }
            Failure::NoAnswer => self.spoken.silent(),
            Failure::Refused(_) | Failure::Moving => self.spoken.took(asked.version),
        }
        false
    }

    /// What the books should cover: what the VM may have, and what it should get. The first word
    /// to books that permitted nothing yet is what there is: they may not know of this VM, or have
    /// restarted, and take what is said without a last permit for what was promised.
    pub(super) fn ceiling(&self, now: Moment) -> Option<Resources> {
        if let Some(permit) = self.permit.stays_until(now).and(self.permit.known()) {
            // Anything else is refused.
            return Some(permit);
        }
        let mut ceiling = self.upper()?;
        if let Some(goal) = self.permit.known().and_then(|_| self.goal(now)) {
            ceiling = ceiling.max(goal.size);
        }
        ceiling.mem = ceiling.mem.round_up(self.info.memory_slot);
        Some(ceiling)
    }
}
