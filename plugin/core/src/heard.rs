//! When a VM's agent was heard last, and what it told people then.

use windlass_protocol::Moment;
use windlass_protocol::plugin::Told;

/// The last word of a VM's agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) last: Last,
    /// `None` of an agent that is not ours.
    pub(crate) told: Option<Box<Told>>,
}

/// When that was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Last {
    /// Never, and nobody has said since when the VM is here.
    #[default]
    Never,
    /// Never; the VM is here since about this moment.
    Here(Moment),
    /// At this moment.
    Heard(Moment),
}

/// What people are told is no part of what books come to: books that were rebuilt equal those that were lost without it.
impl PartialEq for Heard {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
