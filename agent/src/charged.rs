//! The VMs of a node as whoever bills them sees them.

use windlass_agent_core::Charge;
use windlass_protocol::{Mode, VmName};

/// A VM at one moment, as whoever bills it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The VM.
    pub vm: VmName,
    /// What this agent bills of it.
    pub charge: Charge,
    /// Whether it is acted on; `None` while it is not there, or not managed.
    pub mode: Option<Mode>,
    /// Whether its informant has said nothing for longer than it may.
    pub silent: bool,
}
