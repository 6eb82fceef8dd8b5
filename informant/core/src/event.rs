//! What an informant hears, and what it asks for.
//!
//! A shell carries out each [`Action`] and reports: [`Event::Sent`] before the first byte
//! leaves, then exactly one answer. There is at most one call under way per agent, and at
//! most one action under way on the machine ([`Action::Look`] or [`Action::Do`]). A shell
//! hangs up on a call after [`CALL_LIMIT`](windlass_protocol::timing::CALL_LIMIT) and reports [`Failure::NoAnswer`]; a later answer to
//! it is not reported.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use windlass_protocol::{AgentId, Bytes, Moment, Sequence};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Memory was read.
    Sampled(Memory),
    /// The kernel says that tasks waited for memory (its PSI trigger fired).
    Stalled,
    /// Something about the machine's vCPUs or memory changed; worth a look.
    Stirred,
    /// From here on the action may take effect, whether or not its answer reaches us.
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
    /// Answer to [`Action::Look`]; `None` if the machine does not say.
    Seen(Option<MachineSeen>),
    /// Answer to [`Action::Do`]: whether it was done.
    Done(bool),
}

/// How a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer, or a broken one: it may or may not have happened.
    NoAnswer,
    /// The agent answered with this status: it did not happen.
    Refused(u16),
}

/// A reading of `/proc/meminfo` and `/proc/zoneinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What the kernel manages (`MemTotal`).
    pub total: Bytes,
    /// What could be had without swapping (`MemAvailable`).
    pub available: Bytes,
    /// What nobody uses, not even as cache (`MemFree`).
    pub free: Bytes,
    /// What the VM has and the kernel does not manage: pages present less pages managed, over
    /// all zones that hot-added memory does not go to. `None` if it cannot be read.
    pub overhead: Option<Bytes>,
}

/// What the guest's kernel has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineSeen {
    /// vCPUs that are there.
    pub present: BTreeSet<u32>,
    /// vCPUs in use.
    pub online: BTreeSet<u32>,
    /// Memory blocks that are there and not in use.
    pub offline_blocks: BTreeSet<u32>,
}

/// What an informant asks its shell to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Call an agent.
    Call {
        /// Which.
        agent: AgentId,
        /// Where it listens.
        at: SocketAddr,
        /// What to ask.
        ask: Ask,
    },
    /// Read what the machine has.
    Look,
    /// Change the machine.
    Do(Change),
}

/// A call-back of the reference's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// `GET /id`: are you there?
    Id,
    /// `POST /suspend`: another agent counts.
    Suspend,
    /// `POST /resume`: you count.
    Resume,
    /// `POST /try-upscale`: memory, at once.
    MoreMemory,
}

/// A change of the machine. Each is harmless when said twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Memory that is added goes to the movable zone, from which it can be taken again.
    AddedIsMovable,
    /// Bring this memory block online, movable.
    OnlineMemory(u32),
    /// Bring this vCPU online.
    OnlineCpu(u32),
    /// Take this vCPU offline.
    OfflineCpu(u32),
    /// Keep, in the same place, for how long an agent that registered may act without hearing of us.
    Note(Duration),
    /// Keep the set of parked vCPUs where it survives our restart, and not a reboot.
    Remember(BTreeSet<u32>),
}

/// What to do now, and when to ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// At most one per agent, and one for the machine.
    pub actions: Vec<Action>,
    /// The first moment at which the plan would differ without a further event.
    pub wake_at: Option<Moment>,
}

// === impl Plan ===

impl Plan {
    /// Notes that the plan would differ at this moment.
    pub(crate) fn wake(&mut self, at: Moment) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }
}
