//! The desired state of a VM: its bounds, target, policy and mode.
//!
//! [`VmInfo`] is the parsed and checked form. People write it as a VM file or as annotations: see
//! `vm_file` and `annotations`, whose errors name the field, the value and the limit. A change of any
//! field takes effect without a restart.

use crate::{Bytes, CpuLimit, Moment, Resources, VmName, words};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The desired state of a VM, without its addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmInfo {
    /// The VM.
    pub name: VmName,
    /// The smallest and the largest size.
    pub bounds: Bounds,
    /// The target of CPU and memory use.
    pub target: Target,
    /// The policy that computes goals.
    pub policy: Policy,
    /// The time over which load is averaged.
    pub load_window: LoadWindow,
    /// The order when room is short: the higher priority goes first.
    pub priority: i32,
    /// Whether Windlass acts or only observes.
    pub mode: Mode,
    /// The step of memory in the plugin's 16-bit wire formats.
    pub memory_slot: Bytes,
    /// The size does not change before this moment.
    pub paused_until: Option<Moment>,
    /// The time for which the VM keeps unneeded resources.
    #[serde(default)]
    pub scale_down: ScaleDown,
    /// How the VM's CPU is limited to what the VM is granted; `None`: as its agent is configured.
    #[serde(default)]
    pub cpu_limit: Option<CpuLimit>,
}

/// The smallest and the largest size of a VM. `max` covers `min`, and no axis is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The smallest size.
    pub min: Resources,
    /// The largest size.
    pub max: Resources,
}

/// The time for which a VM keeps resources that its signals no longer call for, per axis. Zero: the VM
/// shrinks at once. The limit is [`ScaleDown::LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleDown {
    /// vCPUs.
    pub cpu: Duration,
    /// Memory.
    pub memory: Duration,
}

/// A written [`ScaleDown`]; each axis may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleDownSaid {
    /// vCPUs.
    pub cpu: Option<Duration>,
    /// Memory.
    pub memory: Option<Duration>,
}

/// The defaults of a program for all its VMs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// The target.
    pub target: Target,
    /// The time for which the VM keeps unneeded resources.
    pub scale_down: ScaleDown,
}

/// A target of CPU and memory use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Load average per vCPU; above 0, below 2. The reference's default is 0.9.
    pub load_average: f64,
    /// Fraction of memory in use; above 0, at most 1. The reference's default is 0.75.
    pub memory: f64,
}

/// The policy that computes goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Load average over its target, divided by the compute unit's vCPU; the reference's.
    LoadAverage,
}

/// The time over which load is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadWindow {
    /// Five seconds, from the informant's samples of the run queue.
    #[serde(rename = "5s")]
    FiveSeconds,
    /// Fifteen seconds, from the informant's samples of the run queue.
    #[serde(rename = "15s")]
    FifteenSeconds,
    /// One minute, as the kernel computes it.
    #[serde(rename = "1m")]
    OneMinute,
}

/// Whether Windlass acts or only observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The agent changes the VM's size to its goal.
    Act,
    /// The agent computes and records goals, but changes nothing and sends no requests.
    Observe,
}

// === impl VmInfo ===

impl VmInfo {
    /// The default memory slot.
    pub const DEFAULT_MEMORY_SLOT: Bytes = Bytes::from_mib(128);
}

// === impl ScaleDown ===

impl ScaleDown {
    /// A VM shrinks as soon as its signals say so: the reference's way.
    pub const AT_ONCE: Self = Self { cpu: Duration::ZERO, memory: Duration::ZERO };
    /// The longest valid time.
    pub const LONGEST: Duration = Duration::from_secs(60 * 60);
    /// One minute: load that returns within it finds the VM at its earlier size.
    pub const USUAL: Self = Self { cpu: Duration::from_secs(60), memory: Duration::from_secs(60) };
}

impl Default for ScaleDown {
    fn default() -> Self {
        Self::USUAL
    }
}

// === impl ScaleDownSaid ===

impl ScaleDownSaid {
    /// This, completed by `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { cpu: self.cpu.or(other.cpu), memory: self.memory.or(other.memory) }
    }

    /// This, completed by `usual`.
    pub fn unwrap_or(self, usual: ScaleDown) -> ScaleDown {
        ScaleDown {
            cpu: self.cpu.unwrap_or(usual.cpu),
            memory: self.memory.unwrap_or(usual.memory),
        }
    }
}

// === impl Target ===

impl Target {
    /// The reference's default.
    pub const USUAL: Self = Self { load_average: 0.9, memory: 0.75 };
}

impl Default for Target {
    fn default() -> Self {
        Self::USUAL
    }
}

// === impl LoadWindow ===

impl LoadWindow {
    /// All of them, the longest first.
    pub const LONGEST_FIRST: [Self; 3] = [Self::OneMinute, Self::FifteenSeconds, Self::FiveSeconds];

    /// The length of the window.
    pub const fn length(self) -> Duration {
        match self {
            Self::FiveSeconds => Duration::from_secs(5),
            Self::FifteenSeconds => Duration::from_secs(15),
            Self::OneMinute => Duration::from_secs(60),
        }
    }
}

words::displayed!(LoadWindow, Policy, Mode);
