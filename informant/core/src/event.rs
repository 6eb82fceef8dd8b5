//! The events and the actions of an informant.
//!
//! The shell carries out each [`Action`]. It reports [`Event::Sent`] before the first byte leaves, then
//! exactly one answer. At most one call per agent is in progress, and at most one action on the machine
//! ([`Action::Look`] or [`Action::Do`]). After [`CALL_LIMIT`](windlass_protocol::timing::CALL_LIMIT) the shell gives a call up and
//! reports [`Failure::NoAnswer`]; it does not report a later answer.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use windlass_protocol::{AgentId, Bytes, Moment, Sequence};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sample of memory.
    Sampled(Memory),
    /// Tasks waited for memory: the kernel's PSI trigger fired.
    Stalled,
    /// vCPUs or memory of the machine may have changed.
    Stirred,
    /// The action may take effect from here on, even if its answer is lost.
    Sent(Action),
    /// An agent answered a call with status 200.
    Answered {
        /// The agent that was called.
        agent: AgentId,
        /// The id in its answer.
        by: AgentId,
        /// The number of its answer.
        sequence: Sequence,
    },
    /// The call to this agent failed.
    Failed(AgentId, Failure),
    /// The answer to [`Action::Look`]; `None` if the look failed.
    Seen(Option<MachineSeen>),
    /// The answer to [`Action::Do`]: whether it succeeded.
    Done(bool),
}

/// How a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// No answer, or an invalid one: the agent may or may not have acted.
    #[error("no answer")]
    NoAnswer,
    /// The agent refused with this status and did not act.
    #[error("it answered with status {0}")]
    Refused(u16),
}

/// A reading of `/proc/meminfo` and `/proc/zoneinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory that the kernel manages (`MemTotal`).
    pub total: Bytes,
    /// Memory that is available without swapping (`MemAvailable`).
    pub available: Bytes,
    /// Unused memory, without caches (`MemFree`).
    pub free: Bytes,
    /// Memory that the kernel does not manage: present less managed pages, over all zones but those for
    /// hot-added memory. `None` if it cannot be read.
    pub overhead: Option<Bytes>,
}

/// The hardware that the guest's kernel reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineSeen {
    /// Present vCPUs.
    pub present: BTreeSet<u32>,
    /// Online vCPUs.
    pub online: BTreeSet<u32>,
    /// Present memory blocks that are offline.
    pub offline_blocks: BTreeSet<u32>,
}

/// An action for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Call an agent.
    Call {
        /// The agent.
        agent: AgentId,
        /// Its address.
        at: SocketAddr,
        /// The call.
        ask: Ask,
    },
    /// Read the hardware.
    Look,
    /// Change the machine.
    Do(Change),
}

/// A call-back of the reference's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// `GET /id`: checks that the agent is alive.
    Id,
    /// `POST /suspend`: another agent becomes current.
    Suspend,
    /// `POST /resume`: this agent becomes current.
    Resume,
    /// `POST /try-upscale`: the guest needs memory at once.
    MoreMemory,
}

/// A change of the machine. A repetition is harmless.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Put added memory into the movable zone, so that the hypervisor can take it back.
    AddedIsMovable,
    /// Bring this memory block online, movable.
    OnlineMemory(u32),
    /// Bring this vCPU online.
    OnlineCpu(u32),
    /// Take this vCPU offline.
    OfflineCpu(u32),
    /// Store the longest lease of registered agents, in the same place as the parked vCPUs.
    Note(Duration),
    /// Store the set of parked vCPUs where it survives a restart of the informant, but not a reboot.
    Remember(BTreeSet<u32>),
}

/// The actions to take, and when to plan again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// At most one action per agent, and one for the machine.
    pub actions: Vec<Action>,
    /// The first moment at which the plan differs without a further event.
    pub wake_at: Option<Moment>,
}

// === impl Plan ===

impl Plan {
    /// Notes that the plan differs at this moment.
    pub(crate) fn wake(&mut self, at: Moment) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }
}
