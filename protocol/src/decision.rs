//! One decision about one VM, from its signals to its outcome.
//!
//! The agent's core opens a [`Decision`] for a goal, adds permit, consent and changes as they come, and
//! closes it with an [`Outcome`]. `windlass explain` prints the open decision and the closed decisions of
//! the last hour.

use crate::{LoadWindow, Moment, Reason, Resources, Signals, Target, VmName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A goal, its reason, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The time of the goal.
    pub at: Moment,
    /// The VM.
    pub vm: VmName,
    /// The size of the VM at that time.
    pub from: Resources,
    /// The guest's report.
    pub signals: Signals,
    /// The window over which load was averaged.
    pub window: LoadWindow,
    /// The target.
    pub target: Target,
    /// The size that the signals called for, within the bounds.
    pub goal: Resources,
    /// The reason.
    pub reason: Reason,
    /// The plugin's latest answer, if the agent asked.
    pub permit: Option<Answered>,
    /// The plugin's latest short answer, if it granted everything later.
    #[serde(default)]
    pub short: Option<Answered>,
    /// The guest's latest answer, if the agent asked for consent.
    pub consent: Option<Consented>,
    /// The guest's latest refusal, if the guest agreed later.
    #[serde(default)]
    pub refusal: Option<Consented>,
    /// The changes made, the latest last; bounded.
    pub changes: Vec<Change>,
    /// The outcome.
    pub outcome: Outcome,
}

/// A permit request, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The requested size.
    pub asked: Resources,
    /// The permitted size.
    pub permit: Resources,
}

/// A request for consent, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consented {
    /// The requested size.
    pub asked: Resources,
    /// Whether the guest agreed.
    pub agreed: bool,
    /// The informant's status text, shortened.
    pub status: String,
}

/// A change of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The hypervisor plugged or removed vCPUs, to this number.
    Plug(crate::MilliCpu),
    /// The informant parked vCPUs, down to this number.
    Park(crate::MilliCpu),
    /// The informant un-parked vCPUs, up to this number.
    Unpark(crate::MilliCpu),
    /// The hypervisor set memory to this amount.
    Memory(crate::Bytes),
    /// The agent cancelled a shrink of memory, at this amount.
    CallOff(crate::Bytes),
    /// The host limited the VM's CPU to this amount; `None`: the limit is as somebody else had left it.
    Limit(Option<crate::MilliCpu>),
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// In progress.
    Open,
    /// The VM has its goal.
    Reached {
        /// When the agent saw it.
        at: Moment,
    },
    /// Superseded by another goal.
    Replaced {
        /// When.
        at: Moment,
        /// The size of the VM at that time.
        has: Resources,
    },
    /// The VM is only observed; nothing changed.
    Observed,
    /// The guest restarted, or the VM disappeared.
    Interrupted {
        /// When.
        at: Moment,
    },
}

// === impl Outcome ===

/// One word for the log: `reached`, `superseded`.
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
    /// Whether the permit covers the whole request.
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
