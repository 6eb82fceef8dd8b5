//! What a runner is told, and follows: how things should be with its VM, and how it is reached.

use windlass_agent_core::Desired;
use windlass_drivers::any::AnyAttach;

/// What a runner is told.
pub(crate) struct Told {
    pub(crate) desired: Desired,
    pub(crate) attach: AnyAttach,
    /// Changes whenever `attach` is another.
    pub(crate) reach: u64,
}
