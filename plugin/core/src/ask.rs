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
}

// === impl Ask ===

impl Ask {
    /// The steps in which this VM is granted more.
    pub(crate) fn grain(&self, record: &VmRecord) -> Resources {
        let unit = self.unit.map(Resources::from).unwrap_or_default();
        let own = |own: Resources| Resources {
            cpu: if own.cpu.is_zero() { unit.cpu } else { own.cpu },
            mem: if own.mem.is_zero() { unit.mem } else { own.mem },
        };
        let mut grain = own(record.grain);
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
