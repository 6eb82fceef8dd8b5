//! Which compute unit a VM moves in.
//!
//! A unit that is larger than a VM's minimum would keep the VM from ever having its minimum. So
//! where nothing is configured, a VM's unit is the smaller of the usual one and its minimum, per
//! axis, in whole steps of the driver and whole memory slots.

use crate::{Bytes, Capabilities, ComputeUnit, MilliCpu, VmInfo};

/// What is configured of the compute unit, axis by axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitChoice {
    /// CPU of one unit.
    pub cpu: Option<MilliCpu>,
    /// Memory of one unit.
    pub mem: Option<Bytes>,
}

/// CPU of the usual unit.
const USUAL_CPU: MilliCpu = MilliCpu::from_cores(1);
/// Memory of the usual unit.
const USUAL_MEM: Bytes = Bytes::from_gib(1);

// === impl UnitChoice ===

impl UnitChoice {
    /// What is configured, and the usual amount (1 vCPU, 1 GiB) where nothing is: for those who ask
    /// about no VM in particular.
    pub fn usual(self) -> ComputeUnit {
        let (cpu, mem) = (self.cpu.unwrap_or(USUAL_CPU), self.mem.unwrap_or(USUAL_MEM));
        ComputeUnit::new(cpu, mem).unwrap_or(USUAL)
    }

    /// The unit of this VM; `can` is what its driver can do, once that is known.
    pub fn of(self, info: &VmInfo, can: Option<&Capabilities>) -> ComputeUnit {
        let min = info.bounds.min;
        let steps =
            can.map_or((MilliCpu::ZERO, Bytes::ZERO), |can| (can.cpu_step, can.memory_step));
        let cpu = min.cpu.min(USUAL_CPU).round_up(steps.0);
        let mem = min.mem.min(USUAL_MEM).round_up(steps.1).round_up(info.memory_slot);
        Self { cpu: self.cpu.or(Some(cpu)), mem: self.mem.or(Some(mem)) }.usual()
    }
}

/// One vCPU and 1 GiB.
const USUAL: ComputeUnit = match ComputeUnit::new(USUAL_CPU, USUAL_MEM) {
    Some(unit) => unit,
    None => unreachable!(),
};

impl From<ComputeUnit> for UnitChoice {
    fn from(unit: ComputeUnit) -> Self {
        Self { cpu: Some(unit.cpu()), mem: Some(unit.mem()) }
    }
}
