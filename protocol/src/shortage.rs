//! Why a VM got less than it asked for, with the figures that a person needs.

use crate::status::Booked;
use crate::{Bytes, MilliCpu, Moment, Resources};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

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
    /// By how much more is promised than the node has; nobody grows while that is so.
    pub over: u64,
    /// What of the free room waits for claims of others.
    pub kept: u64,
    /// Who else has it or wants it: those for whom room is kept, in the order in which they
    /// go, then those who have most; [`MOST_NAMED`] at most.
    /// VMs that wait for the same share one list.
    #[serde(serialize_with = "list", deserialize_with = "shared")]
    pub others: Arc<[Booked]>,
}

/// A VM asked, perhaps several times in a row, and got less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When it first asked.
    pub first: Moment,
    /// When it last asked.
    pub last: Moment,
    /// How often it asked.
    pub times: u64,
    /// What for.
    pub asked: Resources,
    /// What it may have.
    pub permit: Resources,
    /// Why that is less, as it was the last time.
    pub short: Vec<Shortage>,
}

// === impl Axis ===

impl Axis {
    /// Where it stands in a pair of both.
    pub const fn index(self) -> usize {
        match self {
            Self::Cpu => 0,
            Self::Memory => 1,
        }
    }

    /// The amount on this axis.
    pub const fn of(self, resources: Resources) -> u64 {
        match self {
            Self::Cpu => resources.cpu.milli(),
            Self::Memory => resources.mem.bytes(),
        }
    }

    /// An amount as people read it: `2 vCPU`, `512MiB`.
    pub fn show(self, amount: u64) -> String {
        match self {
            Self::Cpu => format!("{} vCPU", MilliCpu::from_milli(amount)),
            Self::Memory => Bytes::from_bytes(amount).to_string(),
        }
    }
}

// === impl Shortage ===

/// `2 vCPU of 4 vCPU: 1 vCPU of the node's 6 vCPU is free, of which 1 vCPU is kept for others;
/// default/b (priority 5) has 2 vCPU and wants 4 vCPU, default/c has 1 vCPU`.
impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |amount| self.axis.show(amount);
        write!(f, "{} of {}: ", show(self.permitted), show(self.asked))?;
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
