//! What is going to happen, in order of time; at the same time, in order of arrangement.

use crate::agent::Reply;
use std::collections::BTreeMap;
use windlass_agent_core::Action as AgentAction;
use windlass_informant_core::{Action as InformantAction, Event as InformantEvent};
use windlass_protocol::{Moment, Peer, VmName};

/// Something that is going to happen to one VM.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// The agent plans again.
    AgentWakes { epoch: u64 },
    /// A request of the agent arrives.
    Arrives { epoch: u64, call: u64, action: AgentAction },
    /// An answer reaches the agent.
    Answers { epoch: u64, call: u64, reply: Reply },
    /// The agent hangs up.
    HangsUp { epoch: u64, call: u64, peer: Peer },
    /// The informant plans again.
    InformantWakes { epoch: u64 },
    /// The informant reads its figures.
    InformantSamples { epoch: u64 },
    /// A request of the informant arrives: at the agent, or at the guest's kernel.
    InformantAsks { epoch: u64, action: InformantAction },
    /// An answer reaches the informant.
    InformantHears { epoch: u64, event: InformantEvent },
    /// An informant starts in the guest.
    InformantStarts { boot: u64 },
    /// The guest's kernel gives or takes memory.
    MemoryMoves { boot: u64 },
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<(Moment, u64), (VmName, Happening)>,
    arranged: u64,
}

/// When somebody is woken next: the earliest of what was asked for, so that waking does not
/// multiply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alarm(Option<Moment>);

// === impl Alarm ===

impl Alarm {
    /// Whether a wake-up at this moment is to be arranged: none before it is.
    pub(crate) fn set(&mut self, at: Moment) -> bool {
        let earlier = self.0.is_none_or(|set| at < set);
        if earlier {
            self.0 = Some(at);
        }
        earlier
    }

    /// Whether this is the wake-up that counts.
    pub(crate) fn rings(&mut self, at: Moment) -> bool {
        let rings = self.0 == Some(at);
        if rings {
            self.0 = None;
        }
        rings
    }
}

// === impl Queue ===

impl Queue {
    pub(crate) fn arrange(&mut self, at: Moment, vm: &VmName, happening: Happening) {
        self.arranged += 1;
        self.entries.insert((at, self.arranged), (vm.clone(), happening));
    }

    /// What happens next, if that is not after `until`.
    pub(crate) fn next(&mut self, until: Moment) -> Option<(Moment, VmName, Happening)> {
        let (&key, _) = self.entries.first_key_value()?;
        if key.0 > until {
            return None;
        }
        let (vm, happening) = self.entries.remove(&key)?;
        Some((key.0, vm, happening))
    }

    /// How much is arranged.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets what was arranged for a VM that is gone.
    pub(crate) fn forget(&mut self, vm: &VmName) {
        self.entries.retain(|_, (of, _)| of != vm);
    }
}
