//! What billing knows of one VM.

use windlass_agent_core::Charge;
use windlass_protocol::{Mode, VmName};

/// What billing knows of one VM, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledVm {
    /// The VM.
    pub vm: VmName,
    /// What this agent bills of it.
    pub charge: Charge,
    /// Whether it is acted on; `None` while it is not there, or not managed.
    pub mode: Option<Mode>,
    /// Whether its informant has said nothing for longer than it may.
    pub silent: bool,
}
