//! What the books know of a VM besides what is promised to it.

use crate::{Bounds, Bytes, MilliCpu, Resources, VmInfo};
use serde::{Deserialize, Serialize};

const WHOLE: MilliCpu = MilliCpu::from_cores(1);

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
    /// Of a VM that is described so.
    pub fn of(info: &VmInfo) -> Self {
        Self::listed(info.priority, info.bounds, info.memory_slot)
    }

    /// Of a VM of which no more than this is known. A VM whose bounds are whole vCPUs moves in whole ones, any
    /// other in the unit that its agent names, or else in any amount.
    pub fn listed(priority: i32, bounds: Bounds, memory_slot: Bytes) -> Self {
        let Bounds { min, max } = bounds;
        let whole = [min.cpu, max.cpu].iter().all(|cpu| cpu.round_down(WHOLE) == *cpu);
        let step = if whole { WHOLE } else { MilliCpu::ZERO };
        Self::new(priority, min, memory_slot, step)
    }

    /// Of a VM that grows by whole slots, and by steps of CPU of this size; zero means any amount.
    const fn new(priority: i32, min: Resources, memory_slot: Bytes, cpu_step: MilliCpu) -> Self {
        let grain = Resources { cpu: cpu_step, mem: memory_slot };
        Self { priority, grain, memory_slot, min }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_vm_moves_in_whole_vcpus_if_its_bounds_are_whole() {
        for (min, max, step) in
            [(1_000, 4_000, 1_000), (500, 4_000, 0), (1_000, 3_500, 0), (250, 500, 0)]
        {
            let size = |cpu| Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_gib(1) };
            let bounds = Bounds { min: size(min), max: size(max) };
            let slot = VmInfo::DEFAULT_MEMORY_SLOT;
            let grain = Resources { cpu: MilliCpu::from_milli(step), mem: slot };
            let record = VmRecord { priority: 7, grain, memory_slot: slot, min: bounds.min };
            assert_eq!(VmRecord::listed(7, bounds, slot), record, "{min} to {max}");
        }
    }
}
