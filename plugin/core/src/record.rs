//! What the books know of a VM besides what is promised to it.

use serde::{Deserialize, Serialize};
use windlass_protocol::{Bytes, Resources, VmInfo};

/// What the books know of a VM besides what is promised to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmRecord {
    /// Higher goes first.
    pub priority: i32,
    /// It can use more in multiples of this; zero means any amount.
    pub grain: Resources,
    /// Its step of memory on the wire; what it has is counted in whole ones.
    pub memory_slot: Bytes,
    /// It never goes below this.
    pub min: Resources,
}

// === impl VmRecord ===

impl Default for VmRecord {
    fn default() -> Self {
        Self {
            priority: 0,
            grain: Resources::ZERO,
            memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
            min: Resources::ZERO,
        }
    }
}
