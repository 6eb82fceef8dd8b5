//! What a VM should be: its bounds, its target, and how it is treated.
//!
//! [`VmInfo`] is the parsed, checked form. People write it as a VM file or as annotations;
//! those forms, and the errors that name the field, the value and the limit, are in
//! `vm_file` and `annotations`. A change of any field takes effect without a restart.

use crate::{Bytes, Moment, Resources, VmName, words};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that Windlass is told about one VM, independent of how it is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmInfo {
    /// Which VM.
    pub name: VmName,
    /// Between which sizes it moves.
    pub bounds: Bounds,
    /// Which use of its CPU and memory is aimed at.
    pub target: Target,
    /// How a goal is computed.
    pub policy: Policy,
    /// Over which time load is averaged.
    pub load_window: LoadWindow,
    /// Who goes first when there is not enough for all: higher first.
    pub priority: i32,
    /// Whether Windlass acts or only watches.
    pub mode: Mode,
    /// The step of memory in the plugin's 16-bit wire formats.
    pub memory_slot: Bytes,
    /// Nothing moves before this moment.
    pub paused_until: Option<Moment>,
    /// How long it keeps what its signals no longer call for.
    #[serde(default)]
    pub scale_down: ScaleDown,
}

/// The smallest and the largest size of a VM. `max` covers `min`, and neither has a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Never below this.
    pub min: Resources,
    /// Never above this.
    pub max: Resources,
}

/// How long a VM keeps what its signals no longer call for, on each axis: from zero, which is not at
/// all, up to [`ScaleDown::LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleDown {
    /// vCPUs.
    pub cpu: Duration,
    /// Memory.
    pub memory: Duration,
}

/// What was written of [`ScaleDown`], axis by axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleDownSaid {
    /// vCPUs.
    pub cpu: Option<Duration>,
    /// Memory.
    pub memory: Option<Duration>,
}

/// What holds for every VM of a program that does not say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usual {
    /// Which use is aimed at.
    pub target: Target,
    /// How long it keeps what its signals no longer call for.
    pub scale_down: ScaleDown,
}

/// Which use is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Load average per vCPU; above 0, below 2. The reference's default is 0.9.
    pub load_average: f64,
    /// Fraction of memory in use; above 0, at most 1. The reference's default is 0.75.
    pub memory: f64,
}

/// How a goal is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Load average over its target, divided by the compute unit's vCPU; the reference's.
    LoadAverage,
}

/// Over which time load is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadWindow {
    /// Five seconds, from the informant's run-queue samples.
    #[serde(rename = "5s")]
    FiveSeconds,
    /// Fifteen seconds, from the informant's run-queue samples.
    #[serde(rename = "15s")]
    FifteenSeconds,
    /// One minute, the kernel's figure.
    #[serde(rename = "1m")]
    OneMinute,
}

/// Whether Windlass acts or only watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Sizes follow the goal.
    Act,
    /// Goals are computed and recorded; nothing is touched and nobody is asked.
    Observe,
}

// === impl VmInfo ===

impl VmInfo {
    /// The slot of a VM that does not say otherwise.
    pub const DEFAULT_MEMORY_SLOT: Bytes = Bytes::from_mib(128);
}

// === impl ScaleDown ===

impl ScaleDown {
    /// A VM shrinks as soon as its signals say so: the reference's way.
    pub const AT_ONCE: Self = Self { cpu: Duration::ZERO, memory: Duration::ZERO };
    /// The longest time that may be asked for.
    pub const LONGEST: Duration = Duration::from_secs(60 * 60);
    /// One minute: load that comes back within it finds the VM as large as it was.
    pub const USUAL: Self = Self { cpu: Duration::from_secs(60), memory: Duration::from_secs(60) };
}

impl Default for ScaleDown {
    fn default() -> Self {
        Self::USUAL
    }
}

// === impl ScaleDownSaid ===

impl ScaleDownSaid {
    /// What was said here, and `other` where nothing was.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { cpu: self.cpu.or(other.cpu), memory: self.memory.or(other.memory) }
    }

    /// The same, where `usual` always says something.
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
