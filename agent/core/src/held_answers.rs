//! Answers to an informant's calls, and which of them wait.
//!
//! An informant that hears that another agent counts, or that there is no such session, lets another
//! agent act at once. So nothing that this agent asked for may still take effect then: the answer waits
//! until nothing is under way ([`Scaler::is_quiet`]).

use crate::event::{Call, CallAnswer};
use crate::scaler::Scaler;

/// Answers that wait, each with `T`: by what it is given.
#[derive(Clone, Debug)]
pub struct HeldAnswers<T>(Vec<(T, CallAnswer)>);

// === impl HeldAnswers ===

impl<T> HeldAnswers<T> {
    /// Takes an answer to a call. Returns what is to be given at once.
    pub fn take(&mut self, call: Call, by: T, answer: CallAnswer) -> Option<(T, CallAnswer)> {
        let waits = matches!(
            (call, answer),
            (Call::Suspend(_), CallAnswer::Ours(..))
                | (_, CallAnswer::Unknown | CallAnswer::Other(_))
        );
        if !waits {
            return Some((by, answer));
        }
        self.0.push((by, answer));
        None
    }

    /// What is to be given by now.
    pub fn due(&mut self, scaler: &Scaler) -> Vec<(T, CallAnswer)> {
        if self.0.is_empty() || !scaler.is_quiet() {
            return Vec::new();
        }
        std::mem::take(&mut self.0)
    }

    /// Forgets answers whose callers have hung up.
    pub fn retain(&mut self, waits: impl Fn(&T) -> bool) {
        self.0.retain(|(by, _)| waits(by));
    }
}

impl<T> Default for HeldAnswers<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
