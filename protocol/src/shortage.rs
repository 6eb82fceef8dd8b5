//! The reason why a VM got less than it asked for, with figures for a person.

use crate::status::Booked;
use crate::{Bytes, MilliCpu, Moment, Resources};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// The most VMs that a shortage names.
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

/// The reason why no VM of a node grows on an axis, whatever room the node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// The node is cordoned.
    Cordoned,
    /// The node's kubelet reports that the node is short of memory.
    MemoryPressure,
}

/// The permit is smaller than the request on one axis. Amounts are in the axis's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortage {
    /// The axis.
    pub axis: Axis,
    /// The requested amount.
    pub asked: u64,
    /// The permitted amount.
    pub permitted: u64,
    /// The node's room.
    pub room: u64,
    /// The room that was free before this request.
    pub free: u64,
    /// The excess of reservations over the room on this axis. While there is any, no VM gets more of it
    /// than is reserved for the VM.
    pub over: u64,
    /// The part of the free room that is kept for claims of other VMs.
    pub kept: u64,
    /// The VMs that compete: first those for which room is kept, in their order, then those with the
    /// largest reservations; [`MOST_NAMED`] at most. VMs that wait for the same room share one list.
    #[serde(serialize_with = "list", deserialize_with = "shared")]
    pub others: Arc<[Booked]>,
    /// The reason why no VM of the node grows on this axis; `None` if VMs may grow. Then no room is free to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// One or several requests of a VM in a row that got less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The first request.
    pub first: Moment,
    /// The last request.
    pub last: Moment,
    /// The number of requests.
    pub times: u64,
    /// The requested size.
    pub asked: Resources,
    /// The permitted size.
    pub permit: Resources,
    /// The shortages of the last request.
    pub short: Vec<Shortage>,
}

// === impl Axis ===

impl Axis {
    /// The index in a pair of both axes.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The amount on this axis.
    pub const fn of(self, resources: Resources) -> u64 {
        match self {
            Self::Cpu => resources.cpu.milli(),
            Self::Memory => resources.mem.bytes(),
        }
    }

    /// An amount for people: `2 vCPU`, `512MiB`.
    pub fn show(self, amount: u64) -> String {
        match self {
            Self::Cpu => format!("{} vCPU", MilliCpu::from_milli(amount)),
            Self::Memory => Bytes::from_bytes(amount).to_string(),
        }
    }
}

// === impl Held ===

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cordoned => "the node is cordoned",
            Self::MemoryPressure => "the node is short of memory, says its kubelet",
        })
    }
}

// === impl Shortage ===

/// `2 vCPU of 4 vCPU: 1 vCPU of the node's 6 vCPU is free, of which 1 vCPU is kept for others;
/// default/b (priority 5) has 2 vCPU and wants 4 vCPU, default/c has 1 vCPU`.
impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |amount| self.axis.show(amount);
        write!(f, "{} of {}: ", show(self.permitted), show(self.asked))?;
        if let Some(held) = self.held {
            return write!(f, "{held}, and no VM on it grows meanwhile");
        }
        if self.over > 0 {
            write!(f, "{} more is reserved than the node's {}", show(self.over), show(self.room))?;
        } else {
            write!(f, "{} of the node's {} is free", show(self.free), show(self.room))?;
        }
        if self.kept > 0 {
            write!(f, ", of which {} is kept for others", show(self.kept))?;
        }
        for (nth, other) in self.others.iter().enumerate() {
            let between = if nth == 0 { ";" } else { "," };
            write!(f, "{between} {}", other.name)?;
            if other.priority != 0 {
                write!(f, " (priority {})", other.priority)?;
            }
            let has = self.axis.of(other.reserved);
            write!(f, " has {}", show(has))?;
            let wants = other.claim.map(|claim| self.axis.of(claim)).filter(|wants| *wants > has);
            if let Some(wants) = wants {
                write!(f, " and wants {}", show(wants))?;
            }
        }
        Ok(())
    }
}

fn list<S: Serializer>(others: &[Booked], to: S) -> Result<S::Ok, S::Error> {
    others.serialize(to)
}

fn shared<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[Booked]>, D::Error> {
    Vec::deserialize(from).map(Arc::from)
}
