//! What a VM has, as its hypervisor tells it, and what can be asked of the hypervisor.
//!
//! Law 4, the world and not the wish: a [`Seen`] is only ever made from a hypervisor's
//! answer, never from what was asked for.

use crate::{Bytes, MilliCpu, Resources};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The size of a VM as its driver last saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// vCPUs of the hypervisor, whether or not the guest uses them.
    pub plugged: MilliCpu,
    /// Memory, in its three figures.
    pub memory: MemorySeen,
    /// Whether the hypervisor runs it.
    #[serde(default)]
    pub state: RunState,
}

/// Whether a hypervisor runs a VM. Only a VM that runs, and stays where it is, is resized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The guest runs.
    #[default]
    Running,
    /// The guest runs, and its state is being copied to another hypervisor or to a file.
    Migrating,
    /// The guest stands still while its state is saved, restored or handed over.
    Saving,
    /// The guest stands still: a person or a program stopped it, or it was not started yet.
    Paused,
    /// The guest sleeps (suspend to RAM).
    Suspended,
    /// The guest has shut down, and its hypervisor is still there.
    ShutDown,
    /// The hypervisor stopped the guest after an error, a panic of its kernel, or by its watchdog.
    Failed,
    /// The hypervisor names a state that is not known here.
    Unknown,
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
    /// What the driver promises of order and time.
    pub promises: Promises,
}

/// What a driver promises of order and time. An agent counts on these, and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promises {
    /// A look that begins this long after a resize ended, answered or not, shows its growth, or that
    /// growth never comes. Zero: the hypervisor carries out what it is asked in order.
    pub settles_within: Duration,
    /// What a look or a notice tells is no older than this when it arrives. An agent does not act by
    /// what is older than [`BLIND_AFTER`](crate::timing::BLIND_AFTER).
    pub lag: Duration,
    /// While sizes change, a look is worth its cost this often.
    pub look_again: Duration,
    /// Memory that a guest gives back moves within this; else it is stuck.
    pub stuck_after: Duration,
    /// A request ends within this, unless the hypervisor hangs.
    pub answers_within: Duration,
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

// === impl Promises ===

impl Promises {
    /// Those of a hypervisor on this host that carries out requests in order and tells what is so now.
    pub const IN_ORDER: Self = Self {
        settles_within: Duration::ZERO,
        lag: Duration::ZERO,
        look_again: Duration::from_millis(200),
        stuck_after: Duration::from_secs(15),
        answers_within: Duration::from_secs(5),
    };
}

// === impl Seen ===

impl Seen {
    /// The most that the VM may have by this sight: plugged vCPUs, and [`MemorySeen::upper`].
    pub fn upper(self) -> Resources {
        Resources { cpu: self.plugged, mem: self.memory.upper() }
    }
}

// === impl RunState ===

impl RunState {
    /// Whether a VM in this state may be resized.
    pub const fn may_resize(self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether the guest's time goes on, so that it answers and its load is measured.
    pub const fn executes(self) -> bool {
        matches!(self, Self::Running | Self::Migrating)
    }

    /// The state in a few words, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Running => "QEMU runs the VM",
            Self::Migrating | Self::Saving => "QEMU is saving or migrating the VM",
            Self::Paused => "QEMU is paused",
            Self::Suspended => "the guest sleeps (suspended to RAM)",
            Self::ShutDown => "the guest has shut down",
            Self::Failed => "QEMU has stopped the VM after an error or a panic of the guest",
            Self::Unknown => "QEMU is in a state that this release does not know",
        }
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
