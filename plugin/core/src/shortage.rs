//! Why a VM got less than it asked for, with the figures that a person needs.

use serde::{Deserialize, Serialize};
use windlass_protocol::status::Booked;

/// The VMs named in a shortage, at most.
pub const MOST_NAMED: usize = 8;

/// CPU or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Milli-CPUs.
    Cpu,
    /// Bytes.
    Memory,
}

/// Less was granted than was asked for, on one axis. Amounts are in the axis's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortage {
    /// On which axis.
    pub axis: Axis,
    /// What was asked for.
    pub asked: u64,
    /// What is permitted.
    pub permitted: u64,
    /// What the node may promise.
    pub room: u64,
    /// What of it was not promised to anybody before this request.
    pub free: u64,
    /// Who else has it or wants it, the largest first; [`MOST_NAMED`] at most.
    pub others: Vec<Booked>,
}
