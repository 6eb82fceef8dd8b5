//! When a VM's agent was heard last, and what it told people then.

use windlass_protocol::Moment;
use windlass_protocol::plugin::Told;

/// The last word of a VM's agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) at: Option<Moment>,
    /// `None` of an agent that is not ours.
    pub(crate) told: Option<Box<Told>>,
}

/// What people are told is no part of what books come to: books that were rebuilt equal those that were lost without it.
impl PartialEq for Heard {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
