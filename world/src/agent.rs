//! The shell of a scaler: sends what it plans, and reports what becomes of it.

use crate::queue::Alarm;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_agent_core::{Action, Event, Failure, Scaler};
use windlass_protocol::{AgentId, Peer};

/// One run of the agent for one VM.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) scaler: Scaler,
    /// Counts runs: what was meant for an earlier one is dropped.
    pub(crate) epoch: u64,
    /// The call under way to each peer. An answer to any other is not reported.
    calls: BTreeMap<Peer, u64>,
    last_call: u64,
    /// The session that it asked for last.
    pub(crate) session: Option<AgentId>,
    /// When it is next woken.
    pub(crate) alarm: Alarm,
}

/// What reaches the agent.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Event(Event),
    Failed(Peer, Failure),
}

// === impl Agent ===

impl Agent {
    pub(crate) fn new(scaler: Scaler, epoch: u64) -> Self {
        Self {
            scaler,
            epoch,
            calls: BTreeMap::new(),
            last_call: 0,
            session: None,
            alarm: Alarm::default(),
        }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, peer: Peer) -> u64 {
        self.last_call += 1;
        self.calls.insert(peer, self.last_call);
        self.last_call
    }

    /// Whether this is still the call to `peer` that is waited for; it is so once.
    pub(crate) fn finish(&mut self, peer: Peer, call: u64) -> bool {
        let waited_for = self.calls.get(&peer) == Some(&call);
        if waited_for {
            self.calls.remove(&peer);
        }
        waited_for
    }
}

/// When the shell hangs up.
pub(crate) const fn deadline(action: Action) -> Duration {
    match action.peer() {
        Peer::Plugin | Peer::Informant | Peer::Metrics => Duration::from_secs(2),
        Peer::Hypervisor => Duration::from_secs(5),
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn peer(&self) -> Option<Peer> {
        match self {
            Self::Event(event) => event.peer(),
            Self::Failed(peer, _) => Some(*peer),
        }
    }

    pub(crate) fn into_event(self) -> Event {
        match self {
            Self::Event(event) => event,
            Self::Failed(peer, failure) => Event::Failed(peer, failure),
        }
    }
}
