//! What a VM has, as its hypervisor tells it, and what can be asked of the hypervisor.
//!
//! Law 4, the world and not the wish: a [`Seen`] is only ever made from a hypervisor's
//! answer, never from what was asked for.

use crate::{Bytes, MilliCpu, Resources};
use serde::{Deserialize, Serialize};

/// The size of a VM as its driver last saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// vCPUs of the hypervisor, whether or not the guest uses them.
    pub plugged: MilliCpu,
    /// Memory, in its three figures.
    pub memory: MemorySeen,
}

/// Memory of a VM. The guest fills up to `requested` without asking, also after a reset, so
/// what it may have is [`MemorySeen::upper`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySeen {
    /// What it was started with.
    pub boot: Bytes,
    /// What the guest is asked to have above `boot` (for DIMMs: the sum of those plugged).
    pub requested: Bytes,
    /// What the guest has above `boot`.
    pub size: Bytes,
}

/// What a driver can do with this VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// vCPUs come and go in multiples of this.
    pub cpu_step: MilliCpu,
    /// Memory comes and goes in multiples of this.
    pub memory_step: Bytes,
    /// How a vCPU is given back.
    pub shrink_cpu: ShrinkCpu,
    /// Whether memory can be given back.
    pub shrink_memory: bool,
    /// The least it can have: boot memory; boot vCPUs with removal, one with parking.
    pub min: Resources,
    /// The most it can have.
    pub max: Resources,
}

/// How a vCPU is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShrinkCpu {
    /// The informant takes it offline inside the guest; the hypervisor keeps it.
    Parking,
    /// The hypervisor takes it out.
    Removal,
}

/// One change asked of a hypervisor. Each names the whole size, so saying it twice is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// Have this many vCPUs plugged.
    Cpu(MilliCpu),
    /// Have this much memory in all, boot memory included.
    Memory(Bytes),
}

// === impl Seen ===

impl Seen {
    /// The most that the VM may have by this sight: plugged vCPUs, and [`MemorySeen::upper`].
    pub fn upper(self) -> Resources {
        Resources { cpu: self.plugged, mem: self.memory.upper() }
    }
}

// === impl MemorySeen ===

impl MemorySeen {
    /// The most that the guest has or may take without asking.
    pub fn upper(self) -> Bytes {
        self.boot.saturating_add(self.requested.max(self.size))
    }

    /// The least that the guest has or is being asked to keep.
    pub fn lower(self) -> Bytes {
        self.boot.saturating_add(self.requested.min(self.size))
    }

    /// What the guest has.
    pub fn present(self) -> Bytes {
        self.boot.saturating_add(self.size)
    }

    /// What is still to be given back by the guest.
    pub fn unplugging(self) -> Bytes {
        self.size.saturating_sub(self.requested)
    }
}
