//! What a VM should be: its bounds, its target, and how it is treated.
//!
//! [`VmInfo`] is the parsed, checked form. People write it as a VM file or as annotations;
//! those forms, and the errors that name the field, the value and the limit, are in
//! `vm_file` and `annotations`. A change of any field takes effect without a restart.

use crate::{Bytes, Moment, Resources, VmName};
use serde::{Deserialize, Serialize};
use std::fmt;
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
}

/// The smallest and the largest size of a VM. `max` covers `min`, and neither has a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Never below this.
    pub min: Resources,
    /// Never above this.
    pub max: Resources,
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

// === impl Target ===

impl Default for Target {
    fn default() -> Self {
        Self { load_average: 0.9, memory: 0.75 }
    }
}

// === impl LoadWindow ===

impl LoadWindow {
    /// The length of the window.
    pub const fn length(self) -> Duration {
        match self {
            Self::FiveSeconds => Duration::from_secs(5),
            Self::FifteenSeconds => Duration::from_secs(15),
            Self::OneMinute => Duration::from_secs(60),
        }
    }
}

impl fmt::Display for LoadWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FiveSeconds => "5s",
            Self::FifteenSeconds => "15s",
            Self::OneMinute => "1m",
        })
    }
}

// === impl Policy ===

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LoadAverage => "load-average",
        })
    }
}

// === impl Mode ===

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Act => "act",
            Self::Observe => "observe",
        })
    }
}
