//! The figures of a node's books that are read without their lock.

use windlass_protocol::Resources;

/// The figures of a node's books after their last change. Figures that are read while the books change may
/// be of two moments: they are good for advice, and decide nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The most that may be reserved.
    pub room: Resources,
    /// What is reserved in all.
    pub reserved: Resources,
}

// === impl Summary ===

impl Summary {
    /// The room that is reserved for no VM.
    pub fn free(self) -> Resources {
        self.room.saturating_sub(self.reserved)
    }
}
