//! One decision about one VM, from the signals to what became of it.
//!
//! The agent's core keeps a [`Decision`] open while it acts on a goal, fills in permit,
//! consent and action as they come, and closes it with an [`Outcome`]. `windlass explain`
//! prints the closed ones of the last hour and the one that is open.

use crate::{LoadWindow, Moment, Reason, Resources, Signals, Target, VmName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What was decided, why, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When the goal was set.
    pub at: Moment,
    /// For which VM.
    pub vm: VmName,
    /// What the VM had then.
    pub from: Resources,
    /// What the guest reported.
    pub signals: Signals,
    /// Over which window load was averaged.
    pub window: LoadWindow,
    /// What was aimed at.
    pub target: Target,
    /// What the signals called for, within the bounds.
    pub goal: Resources,
    /// Why that.
    pub reason: Reason,
    /// What the plugin was asked for and allowed, if it was asked.
    pub permit: Option<Answered>,
    /// The plugin's latest answer of less, if it allowed all of it later.
    #[serde(default)]
    pub short: Option<Answered>,
    /// What the guest was asked to be content with, if it was asked.
    pub consent: Option<Consented>,
    /// The guest's latest refusal, if it refused before it agreed.
    #[serde(default)]
    pub refusal: Option<Consented>,
    /// What was done, the latest last; bounded.
    pub changes: Vec<Change>,
    /// What became of it.
    pub outcome: Outcome,
}

/// A question to the plugin, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// What was asked for.
    pub asked: Resources,
    /// What was allowed.
    pub permit: Resources,
}

/// A question to the guest, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consented {
    /// What the guest was asked to be content with.
    pub asked: Resources,
    /// Whether it agreed.
    pub agreed: bool,
    /// The informant's own words, shortened.
    pub status: String,
}

/// Something that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// vCPUs were plugged or removed, up to this many.
    Plug(crate::MilliCpu),
    /// vCPUs were parked, down to this many.
    Park(crate::MilliCpu),
    /// vCPUs were un-parked, up to this many.
    Unpark(crate::MilliCpu),
    /// Memory was set to this much.
    Memory(crate::Bytes),
    /// A shrink of memory was called off, at this much.
    CallOff(crate::Bytes),
}

/// What became of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Under way.
    Open,
    /// The VM has its goal.
    Reached {
        /// When it was seen to have it.
        at: Moment,
    },
    /// Superseded by another goal; the VM had this by then.
    Replaced {
        /// When.
        at: Moment,
        /// What the VM had.
        has: Resources,
    },
    /// Only watched: nothing was done.
    Observed,
    /// The guest restarted or the VM went away meanwhile.
    Interrupted {
        /// When.
        at: Moment,
    },
}

// === impl Outcome ===

/// In a word, for the log: `reached`, `superseded`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "open",
            Self::Reached { .. } => "reached",
            Self::Replaced { .. } => "superseded",
            Self::Observed => "observed",
            Self::Interrupted { .. } => "interrupted",
        })
    }
}

// === impl Answered ===

impl Answered {
    /// Whether all was allowed that was asked for.
    pub fn is_full(&self) -> bool {
        self.permit.covers(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, MilliCpu};

    #[test]
    fn an_outcome_is_one_word() {
        let (at, has) = (Moment::from_millis(1), Resources::ZERO);
        let words = [
            Outcome::Open,
            Outcome::Reached { at },
            Outcome::Replaced { at, has },
            Outcome::Observed,
            Outcome::Interrupted { at },
        ];
        let words = words.map(|outcome| outcome.to_string());
        assert_eq!(words, ["open", "reached", "superseded", "observed", "interrupted"]);
    }

    #[test]
    fn an_answer_is_full_that_lacks_nothing_on_either_axis() {
        let size = |cpu, mem| Resources::new(MilliCpu::from_cores(cpu), Bytes::from_gib(mem));
        let full = |permit| Answered { asked: size(2, 4), permit }.is_full();
        assert!(full(size(2, 4)) && full(size(3, 4)));
        assert!(!full(size(1, 8)) && !full(size(4, 2)));
    }
}
