//! What an agent tells beside a request: the goal of its VM, and why the VM has the size that it has.
//!
//! It is one more key, `windlass`, of a request in the latest version. The reference knows nothing of it: its plugins pass over a
//! key that they do not know, and its agents never write it. A plugin shows it to people, and grants nothing by it. A text is cut to
//! [`LONGEST_WORDS`], and a body that were longer than a plugin reads goes without it.

use super::OverRange;
use super::parts::{Counted, Size};
use crate::go_json::{self, Json, Parser, Path, Read, Write, Writer};
use crate::{BadBody, Bytes, Resources, Waiting, words};
use serde::{Deserialize, Serialize};

/// The longest text, in bytes.
pub const LONGEST_WORDS: usize = 200;

/// What an agent tells of its VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The size that the signals call for; `None` before there are any.
    pub goal: Option<Resources>,
    /// Why the VM has its size.
    pub why: Why,
    /// The same in a sentence.
    pub words: Box<str>,
}

/// Why a VM has the size that it has, as far as its agent knows. Of several reasons the first in this order is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A person has it keep its size, or another agent has it.
    Paused,
    /// The agent only observes it.
    Observing,
    /// It is about to move to another node.
    Moves,
    /// Its hypervisor does not answer.
    HypervisorSilent,
    /// It does not run, or its guest restarts.
    Stopped,
    /// No informant speaks for its guest.
    NoInformant,
    /// The guest reports no load or no memory.
    NoMetrics,
    /// A resize had no effect, or the guest does not return memory.
    Stuck,
    /// The host has less memory than its books.
    HostMemory,
    /// The agent was permitted less than it asked for.
    Room,
    /// The plugin gives no new permit.
    NoPermit,
    /// The guest declined to shrink.
    Declined,
    /// It is being resized.
    Resizing,
    /// It could be smaller, and keeps its size for a while.
    Resting,
    /// It has its goal.
    AtGoal,
    /// What an agent of a later release tells.
    #[serde(other)]
    Other,
}

/// The same on the wire, however memory counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wire<M> {
    goal: Option<Size<M>>,
    why: String,
    words: String,
}

// === impl Told ===

impl Told {
    /// This, with a text that is cut to its limit.
    pub fn new(goal: Option<Resources>, why: Why, words: &str) -> Self {
        Self { goal, why, words: bounded(words) }
    }
}

// === impl Why ===

impl From<&Waiting> for Why {
    fn from(waiting: &Waiting) -> Self {
        match waiting {
            Waiting::Frozen | Waiting::Paused { .. } => Self::Paused,
            Waiting::Observing => Self::Observing,
            Waiting::Move => Self::Moves,
            Waiting::HypervisorLost => Self::HypervisorSilent,
            Waiting::Stopped { .. } | Waiting::Reboot => Self::Stopped,
            Waiting::Session | Waiting::Informant => Self::NoInformant,
            Waiting::FirstSignals | Waiting::Signals { .. } => Self::NoMetrics,
            Waiting::NoEffect { .. } | Waiting::StuckUnplug { .. } => Self::Stuck,
            Waiting::HostMemory { .. } => Self::HostMemory,
            Waiting::Room { .. } => Self::Room,
            Waiting::Plugin => Self::NoPermit,
            Waiting::Refused { .. } => Self::Declined,
            Waiting::Consent | Waiting::Hypervisor | Waiting::Unplug { .. } | Waiting::Guest => {
                Self::Resizing
            }
            Waiting::Holding { .. }
            | Waiting::Settling { .. }
            | Waiting::Flapping { .. }
            | Waiting::Window { .. } => Self::Resting,
            Waiting::AtGoal => Self::AtGoal,
        }
    }
}

words::displayed!(Why);

// === impl Wire ===

impl<M: Counted> Wire<M> {
    pub(super) fn of(told: &Told, slot: Bytes) -> Result<Self, OverRange> {
        let goal = told.goal.map(|goal| Size::of("windlass.goal", goal, slot)).transpose()?;
        Ok(Self { goal, why: told.why.to_string(), words: bounded(&told.words).into() })
    }

    /// What it tells, with slots of this size.
    pub(super) fn told(self, slot: Bytes) -> Told {
        let why = words::named(&self.why).unwrap_or(Why::Other);
        Told::new(self.goal.map(|goal| goal.resources(slot)), why, &self.words)
    }

    fn keys<T>(&mut self, read: impl FnOnce(&mut [(&str, &mut dyn Read)]) -> T) -> T {
        let Self { goal, why, words } = self;
        read(&mut [("goal", goal), ("why", why), ("words", words)])
    }
}

impl<M: Counted> Read for Wire<M> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        self.keys(|keys| go_json::read_object(at, json, keys))
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        self.keys(|keys| go_json::read_written(from, keys))
    }
}

impl<M: Counted> Write for Wire<M> {
    fn write(&self, out: &mut Writer) {
        let Self { goal, why, words } = self;
        out.object(&[("goal", goal), ("why", why), ("words", words)]);
    }
}

/// Without control characters, and no longer than its limit.
fn bounded(text: &str) -> Box<str> {
    let mut text = words::sanitized(text, LONGEST_WORDS);
    if text.len() > LONGEST_WORDS {
        // The mark of a cut has three bytes.
        let fits = (0..=LONGEST_WORDS - 3).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(fits.unwrap_or(0));
        text.push('…');
    }
    text.into()
}
