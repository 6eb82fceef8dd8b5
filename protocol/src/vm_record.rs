//! What the books know of a VM besides what is promised to it.

use crate::{Bytes, MilliCpu, Resources, VmInfo};
use serde::{Deserialize, Serialize};

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

impl VmRecord {
    /// Of a VM that grows by whole slots, and by steps of CPU of this size; zero means any amount.
    pub const fn new(
        priority: i32,
        min: Resources,
        memory_slot: Bytes,
        cpu_step: MilliCpu,
    ) -> Self {
        let grain = Resources { cpu: cpu_step, mem: memory_slot };
        Self { priority, grain, memory_slot, min }
    }

    /// Of a VM whose hypervisor plugs whole vCPUs.
    pub const fn of(info: &VmInfo) -> Self {
        Self::new(info.priority, info.bounds.min, info.memory_slot, MilliCpu::from_cores(1))
    }
}

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
