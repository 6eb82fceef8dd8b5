//! What a session answers to the calls of its informant.
//!
//! A call that names another id changes nothing, and one that comes twice changes nothing more.

use super::{Session, State};
use crate::event::{Call, CallAnswer, NotNow};
use windlass_protocol::Moment;
use windlass_protocol::timing::RESUME_MAY_BE_OLD;

// === impl Session ===

impl Session {
    /// Answers the informant. Saying the same twice gets the same answer, with a new number. A call
    /// that may have waited for long keeps nothing alive: the informant may have hung up on it.
    pub(crate) fn call(&mut self, now: Moment, call: Call, may_be_old: bool) -> CallAnswer {
        let Some(id) = self.id() else { return CallAnswer::Unknown };
        let expected = match call {
            Call::Id => id,
            Call::Resume(expected)
            | Call::Suspend(expected)
            | Call::MoreResources { expected, .. } => expected,
        };
        if expected != id {
            return CallAnswer::Other(expected);
        }
        let version = self.version;
        match (call, self.state) {
            // The informant may say so before its answer to the registration is read.
            (Call::Resume(_), State::Opening { .. }) => {
                self.state = State::Opening { resumed: true };
            }
            (Call::Resume(_), State::Suspended { since })
                if now < since.after(RESUME_MAY_BE_OLD) =>
            {
                return CallAnswer::NotNow(NotNow::ResumesTooSoon);
            }
            (Call::Resume(_) | Call::Suspend(_) | Call::MoreResources { .. }, State::Leaving) => {
                return CallAnswer::Unknown;
            }
            (Call::Resume(_), State::Active) => {}
            (Call::Resume(_), _) => {
                (self.state, self.waits) = (State::Active, false);
                (self.checked_at, self.leased_at, self.health_at) = (None, None, now);
            }
            (Call::Suspend(_), State::Opening { .. }) => {
                // A word to run that came before it is older.
                (self.state, self.waits) = (State::Opening { resumed: false }, true);
                return CallAnswer::NotNow(NotNow::SuspendsUnregistered);
            }
            (Call::Suspend(_), _) => {
                (self.state, self.waits) = (State::Suspended { since: now }, true);
            }
            (Call::MoreResources { .. }, State::Active) if !version.asks_for_more() => {
                return CallAnswer::NotNow(NotNow::MoreUnknown(version));
            }
            (Call::MoreResources { .. }, State::Active) | (Call::Id, _) => {}
            (Call::MoreResources { .. }, State::Registered { .. } | State::Suspended { .. }) => {
                return CallAnswer::NotNow(NotNow::MoreSuspended);
            }
            (Call::MoreResources { .. }, State::Opening { .. }) => {
                return CallAnswer::NotNow(NotNow::MoreUnconfirmed);
            }
            (Call::MoreResources { .. }, State::Absent) => return CallAnswer::Unknown,
        }
        (self.heard_at, self.is_unanswered) = (now, false);
        if !may_be_old {
            self.called_at = now;
        }
        self.sequence = self.sequence.next();
        CallAnswer::Ours(id, self.sequence)
    }
}
