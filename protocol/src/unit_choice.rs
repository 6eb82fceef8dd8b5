//! The choice of a VM's compute unit.
//!
//! With a unit larger than its minimum, a VM could never have its minimum. So the default unit is, per
//! axis, the smaller of the usual unit and the VM's minimum, in whole steps of the driver and whole
//! memory slots.

use crate::config::{Field, Kind, Reader, key};
use crate::{Bytes, Capabilities, ComputeUnit, MilliCpu, VmInfo};

/// The configured compute unit; each axis may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitChoice {
    /// CPU of one unit.
    pub cpu: Option<MilliCpu>,
    /// Memory of one unit.
    pub mem: Option<Bytes>,
}

/// The key for vCPUs of a compute unit, in every file that has it.
pub const CPU: Field =
    key("compute_unit.cpu", Kind::cpu(64), "vCPUs of the step that sizes move in.")
        .otherwise("the smaller of 1 and the VM's min.cpu");
/// The key for memory of a compute unit, in every file that has it.
pub const MEMORY: Field = key(
    "compute_unit.memory",
    Kind::memory(Bytes::from_mib(1), Bytes::from_gib(1024)),
    "Memory of the step that sizes move in.",
)
.otherwise("the smaller of 1GiB and the VM's min.memory");

/// CPU of the usual unit.
pub const USUAL_CPU: MilliCpu = MilliCpu::from_cores(1);
/// Memory of the usual unit.
pub const USUAL_MEM: Bytes = Bytes::from_gib(1);

// === impl UnitChoice ===

impl UnitChoice {
    /// Reads the keys [`CPU`] and [`MEMORY`].
    pub fn read(file: &mut Reader) -> Self {
        Self { cpu: file.find(CPU.name), mem: file.find(MEMORY.name) }
    }

    /// The configured unit, completed by the usual amounts (1 vCPU, 1 GiB), independent of any VM.
    pub fn usual(self) -> ComputeUnit {
        let (cpu, mem) = (self.cpu.unwrap_or(USUAL_CPU), self.mem.unwrap_or(USUAL_MEM));
        ComputeUnit::new(cpu, mem).unwrap_or(USUAL)
    }

    /// The unit of this VM; `can` are the abilities of its driver, once they are known.
    pub fn of(self, info: &VmInfo, can: Option<&Capabilities>) -> ComputeUnit {
        let min = info.bounds.min;
        let (cpu_step, step) =
            can.map(|can| (can.cpu_grain(), can.memory_step)).unwrap_or_default();
        let cpu = min.cpu.min(USUAL_CPU).round_up(cpu_step);
        let mem = min.mem.min(USUAL_MEM).round_up(step).round_up(info.memory_slot);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Bounds, LoadWindow, Mode, Policy, Resources, ScaleDown, ShrinkCpu, Target, VmName,
    };

    #[test]
    fn a_unit_is_no_larger_than_the_minimum_in_whole_steps_and_slots() {
        let mib = Bytes::from_mib;
        for (cpu, mem, slot, step, unit) in [
            // The README's own VM.
            (1000, mib(512), mib(128), mib(2), (1000, mib(512))),
            (4000, mib(8192), mib(128), mib(2), (1000, mib(1024))),
            (250, mib(256), mib(128), mib(128), (1000, mib(256))),
            (1000, mib(130), mib(1), mib(128), (1000, mib(256))),
        ] {
            let info = info(Resources::new(MilliCpu::from_milli(cpu), mem), slot);
            let got = UnitChoice::default().of(&info, Some(&can(step)));
            assert_eq!((got.cpu().milli(), got.mem()), unit, "{mem} in slots of {slot}");
        }
    }

    #[test]
    fn each_configured_axis_overrides_the_default() {
        let info = info(Resources::new(MilliCpu::from_cores(1), Bytes::from_mib(512)), SLOT);
        let configured = UnitChoice { cpu: Some(MilliCpu::from_cores(2)), mem: None };
        let got = configured.of(&info, None);
        assert_eq!((got.cpu(), got.mem()), (MilliCpu::from_cores(2), Bytes::from_mib(512)));
        assert_eq!(configured.usual().mem(), USUAL_MEM);
        assert_eq!(UnitChoice::default().usual(), USUAL);
    }

    const SLOT: Bytes = VmInfo::DEFAULT_MEMORY_SLOT;

    fn info(min: Resources, memory_slot: Bytes) -> VmInfo {
        VmInfo {
            name: VmName::on_host("a"),
            bounds: Bounds { min, max: min },
            target: Target::default(),
            policy: Policy::LoadAverage,
            load_window: LoadWindow::FifteenSeconds,
            priority: 0,
            mode: Mode::Act,
            memory_slot,
            paused_until: None,
            scale_down: ScaleDown::default(),
            cpu_limit: None,
        }
    }

    fn can(memory_step: Bytes) -> Capabilities {
        let most = Resources::new(MilliCpu::from_cores(8), Bytes::from_gib(16));
        Capabilities {
            cpu_step: MilliCpu::from_cores(1),
            limit_step: None,
            memory_step,
            shrink_cpu: ShrinkCpu::Parking,
            shrink_memory: true,
            promises: crate::Promises::IN_ORDER,
            min: Resources::new(MilliCpu::from_cores(1), Bytes::from_mib(128)),
            max: most,
        }
    }
}
