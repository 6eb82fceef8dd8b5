//! The size of a VM as its hypervisor reports it, and the changes that the hypervisor can make.
//!
//! Law 4, the world and not the wish: a [`Seen`] comes only from a hypervisor's answer, never from a
//! request.

use crate::{Bytes, MilliCpu, Resources, words};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The size of a VM as its driver last saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Plugged vCPUs, even if the guest does not use them.
    pub plugged: MilliCpu,
    /// The host's limit on the VM's CPU; `None` if there is none, or if the driver sets none.
    #[serde(default)]
    pub limit: Option<MilliCpu>,
    /// The limit that somebody else has set, and that is put back when the VM is let go; `None` if there
    /// was none. The driver never raises its own limit above it.
    #[serde(default)]
    pub found_limit: Option<MilliCpu>,
    /// Memory.
    pub memory: MemorySeen,
    /// The state of the VM.
    #[serde(default)]
    pub state: RunState,
}

/// The state of a VM. The agent resizes a VM only while it runs and stays on its hypervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The guest runs.
    #[default]
    Running,
    /// The guest runs while the hypervisor copies its state to another hypervisor or to a file.
    Migrating,
    /// The guest is stopped while the hypervisor saves, restores or hands over its state.
    Saving,
    /// The guest is stopped by a person or a program, or was not started yet.
    Paused,
    /// The guest sleeps (suspend to RAM).
    Suspended,
    /// The guest has shut down, but its hypervisor still runs.
    ShutDown,
    /// The hypervisor stopped the guest after an error, a kernel panic or a watchdog timeout.
    Failed,
    /// The hypervisor reports a state that this release does not know.
    Unknown,
}

/// Memory of a VM. The guest may fill memory up to `requested` at any time, also after a reset, so its
/// upper limit is [`MemorySeen::upper`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySeen {
    /// The memory at boot.
    pub boot: Bytes,
    /// The requested memory above `boot` (for DIMMs: the sum of the plugged ones).
    pub requested: Bytes,
    /// The guest's actual memory above `boot`.
    pub size: Bytes,
}

/// The abilities of a driver with this VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The step of vCPUs.
    pub cpu_step: MilliCpu,
    /// The step of the host's limit on the VM's CPU; `None` if the driver sets no limit.
    #[serde(default)]
    pub limit_step: Option<MilliCpu>,
    /// The step of memory.
    pub memory_step: Bytes,
    /// How the VM gives vCPUs back.
    pub shrink_cpu: ShrinkCpu,
    /// Whether the VM can give memory back.
    pub shrink_memory: bool,
    /// The minimum: boot memory; one step of the limit, or, without a limit, boot vCPUs with removal and one vCPU
    /// with parking.
    pub min: Resources,
    /// The maximum.
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

/// How the VM gives vCPUs back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShrinkCpu {
    /// The informant takes the vCPU offline inside the guest; the hypervisor keeps it.
    Parking,
    /// The hypervisor unplugs the vCPU.
    Removal,
    /// The hypervisor takes out what the limit does not cover, by itself. The guest's consent is enough, also of one that does
    /// not report its vCPUs.
    ByLimit,
}

/// A change of a VM by its hypervisor. It names the whole size, so a repetition is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// Set the number of plugged vCPUs.
    Cpu(MilliCpu),
    /// Set the total memory, boot memory included.
    Memory(Bytes),
    /// Set the host's limit on the VM's CPU; `None`: put back what somebody else had set, or no limit.
    Limit(Option<MilliCpu>),
}

/// How often and for how long the host's limit held a VM up: the kernel's counts, since the limited group
/// was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitCounts {
    /// Periods of 100 ms in which the VM ran.
    pub periods: u64,
    /// Those of them in which it used up what the limit leaves it.
    pub throttled: u64,
    /// How long its threads waited for the next period, all of them together.
    pub waited: Duration,
    /// How often somebody took the driver's limit away, since it attached.
    pub resets: u64,
}

/// How the VM's CPU is limited to what the VM is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuLimit {
    /// The host limits the VM's process: the CPU quota of its cgroup.
    Cgroup,
    /// The guest's word counts: vCPUs that it reports as parked are given back.
    Trust,
    /// Nothing limits it: every plugged vCPU counts.
    None,
}

words::displayed!(CpuLimit);

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
    /// The largest size that the VM may have: plugged vCPUs as far as the host's limit lets it use
    /// them, and [`MemorySeen::upper`].
    pub fn upper(self) -> Resources {
        let cpu = self.limit.map_or(self.plugged, |limit| limit.min(self.plugged));
        Resources { cpu, mem: self.memory.upper() }
    }
}

// === impl Capabilities ===

impl Capabilities {
    /// The step in which the VM's CPU changes: of the host's limit, or else of vCPUs.
    pub fn cpu_grain(&self) -> MilliCpu {
        self.limit_step.unwrap_or(self.cpu_step)
    }

    /// The abilities while the host limits nothing: whole vCPUs.
    #[must_use]
    pub fn without_limit(self) -> Self {
        let cpu = self.min.cpu.round_up(self.cpu_step);
        Self { limit_step: None, min: Resources { cpu, ..self.min }, ..self }
    }

    /// The abilities with the VM as it was seen: it has parts of a vCPU only while a limit is in force, and
    /// no more CPU than somebody else's limit leaves it, even where that is less than a step. Where that limit is
    /// no longer in force, it keeps the vCPUs that it needs for as much.
    #[must_use]
    pub fn with(self, seen: Seen) -> Self {
        let can = if seen.limit.is_some() { self } else { self.without_limit() };
        let Some(found) = seen.found_limit else { return can };
        let least = if seen.limit.is_some() { can.min.cpu.min(found) } else { can.min.cpu };
        let within = match seen.limit {
            Some(_) => found.round_down(can.cpu_grain()).max(least),
            None => found.round_up(can.cpu_step),
        };
        let most = can.max.cpu.min(within);
        let (min, max) = (Resources { cpu: least, ..can.min }, Resources { cpu: most, ..can.max });
        Self { min, max, ..can }
    }
}

// === impl RunState ===

impl RunState {
    /// Whether the agent may resize a VM in this state.
    pub const fn may_resize(self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether the guest executes, so that it answers and its load can be measured.
    pub const fn executes(self) -> bool {
        matches!(self, Self::Running | Self::Migrating)
    }

    /// The state in words, for people.
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
    /// The most memory that the guest has or may take at any time.
    pub fn upper(self) -> Bytes {
        self.boot.saturating_add(self.requested.max(self.size))
    }

    /// The smaller of the guest's actual and requested memory.
    pub fn lower(self) -> Bytes {
        self.boot.saturating_add(self.requested.min(self.size))
    }

    /// The guest's actual memory.
    pub fn present(self) -> Bytes {
        self.boot.saturating_add(self.size)
    }

    /// The memory that the guest still has to return.
    pub fn unplugging(self) -> Bytes {
        self.size.saturating_sub(self.requested)
    }
}
