//! How things should be with one VM, and how it is reached: its runner follows that.

use windlass_agent_core::Desired;
use windlass_drivers::any::AnyAttach;

/// How things should be with one VM.
pub(crate) struct DesiredState {
    pub(crate) desired: Desired,
    pub(crate) attach: AnyAttach,
    /// Changes whenever `attach` is another.
    pub(crate) reach: u64,
}
