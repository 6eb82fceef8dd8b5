//! What an agent asks the books and what they grant, whatever the version that it is said in.

use windlass_protocol::{Axis, ComputeUnit, MilliCpu, Resources, Shortage, VmRecord};

/// What an agent that knows no parts of a vCPU can be told.
const CORE: MilliCpu = MilliCpu::from_cores(1);

/// What an agent says of its VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// What the VM has or should get.
    pub wanted: Resources,
    /// What it was last permitted, if its agent says so.
    pub last_permit: Option<Resources>,
    /// Its agent's compute unit, if it says so: the grain of a VM that has none of its own.
    pub unit: Option<ComputeUnit>,
    /// Its agent knows whole CPUs only.
    pub whole_cpus: bool,
    /// Its agent names its last permit, if it has one: without one it says what the VM has.
    pub names_permits: bool,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// What the VM may have.
    pub permit: Resources,
    /// Why that is less than it asked for; empty if it is not.
    pub short: Vec<Shortage>,
    /// It is about to be moved, and keeps its size until then.
    pub moving: bool,
    /// It may not be told of more yet: no ceiling that covers more was recorded in time.
    pub is_unrecorded: bool,
}

/// What the books say to a request where ceilings are recorded.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposed {
    /// The answer.
    Granted(Granted),
    /// The answer has to wait until a ceiling is recorded: what would be granted is reserved.
    Waits,
}

// === impl Granted ===

impl Granted {
    /// All that was asked for, or all that there is.
    pub(crate) const fn all(permit: Resources, moving: bool) -> Self {
        Self { permit, short: Vec::new(), moving, is_unrecorded: false }
    }
}

// === impl Ask ===

impl Ask {
    /// The steps in which this VM is granted more. An agent whose unit is a part of a vCPU moves in parts,
    /// whatever is known of its VM.
    pub(crate) fn grain(&self, record: &VmRecord) -> Resources {
        let unit = self.unit.map(Resources::from).unwrap_or_default();
        let Resources { cpu, mem } = record.grain;
        let finer = !unit.cpu.is_zero() && unit.cpu < cpu;
        let mut grain = Resources {
            cpu: if cpu.is_zero() || finer { unit.cpu } else { cpu },
            mem: if mem.is_zero() { unit.mem } else { mem },
        };
        if self.whole_cpus {
            grain.cpu = grain.cpu.max(CORE).round_up(CORE);
        }
        grain
    }

    /// What its agent can be told of it.
    pub(crate) fn sayable(&self, axis: Axis, permit: u64) -> u64 {
        match axis {
            Axis::Cpu if self.whole_cpus => permit - permit % CORE.milli(),
            Axis::Cpu | Axis::Memory => permit,
        }
    }
}

impl From<Resources> for Ask {
    fn from(wanted: Resources) -> Self {
        Self { wanted, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::Bytes;

    #[test]
    fn a_vm_moves_in_its_own_steps_or_in_a_finer_unit_of_its_agent() {
        for (own, unit, whole_cpus, step) in [
            (1000, None, false, 1000),
            (1000, Some(2000), false, 1000),
            (1000, Some(250), false, 250),
            (1000, Some(250), true, 1000),
            (0, Some(250), false, 250),
            (0, None, false, 0),
        ] {
            let size = |milli| Resources::new(MilliCpu::from_milli(milli), Bytes::from_mib(128));
            let unit = unit.and_then(|milli| ComputeUnit::try_from(size(milli)).ok());
            let record = VmRecord { grain: size(own), ..VmRecord::default() };
            let ask = Ask { unit, whole_cpus, ..Ask::default() };
            assert_eq!(ask.grain(&record), size(step), "{own} {unit:?} {whole_cpus}");
        }
    }
}
