//! The shell of a scaler: sends what it plans, and reports what becomes of it.

use crate::queue::{Alarm, Place};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_agent_core::{Action, HeldAnswers, Scaler};
use windlass_protocol::{AgentId, Peer, Resources};
use windlass_scaling::Sample;

/// One run of the agent for one VM.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) scaler: Scaler,
    /// Counts runs: what was meant for an earlier one is dropped.
    pub(crate) epoch: u64,
    /// The call under way to each peer. An answer to any other is not reported.
    calls: BTreeMap<Peer, UnderWay>,
    last_call: u64,
    /// The session that it asked for last.
    pub(crate) session: Option<AgentId>,
    /// Its host's books know that the VM is there, since this run saw it.
    pub(crate) entered: bool,
    /// What it last read of the guest: a permit's wire carries its load.
    pub(crate) sample: Option<Sample>,
    /// What the VM had, as far as it knew, when it last asked for a permit.
    pub(crate) found: Resources,
    /// It has heard, since the hypervisor last ran the VM as usual, that it does not.
    pub(crate) knows_stopped: bool,
    /// When it is next woken.
    pub(crate) alarm: Alarm,
    /// Answers that wait until nothing is under way.
    pub(crate) held: HeldAnswers<Called>,
}

/// A call under way: its number, what it is for, and when it is hung up.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    call: u64,
    action: Action,
    hangs_up: Place,
}

/// A call of the informant: of which run, call and session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    pub(crate) epoch: u64,
    pub(crate) call: u64,
    pub(crate) id: AgentId,
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
            entered: false,
            sample: None,
            found: Resources::ZERO,
            knows_stopped: false,
            alarm: Alarm::default(),
            held: HeldAnswers::default(),
        }
    }

    /// The number of the next call.
    pub(crate) fn next_call(&mut self) -> u64 {
        self.last_call += 1;
        self.last_call
    }

    /// A call begins, which is hung up at that place of the queue.
    pub(crate) fn begin(&mut self, action: Action, call: u64, hangs_up: Place) {
        self.calls.insert(action.peer(), UnderWay { call, action, hangs_up });
    }

    /// The call to this peer that is waited for.
    pub(crate) fn waits_for(&self, peer: Peer) -> Option<u64> {
        self.calls.get(&peer).map(|under_way| under_way.call)
    }

    /// What this call to `peer` was for, and where it is hung up, if it is the one that is waited
    /// for; it is so once.
    pub(crate) fn finish(&mut self, peer: Peer, call: u64) -> Option<(Action, Place)> {
        let UnderWay { action, hangs_up, .. } =
            *self.calls.get(&peer).filter(|under_way| under_way.call == call)?;
        self.calls.remove(&peer);
        Some((action, hangs_up))
    }
}

/// When the shell hangs up.
pub(crate) const fn deadline(action: Action) -> Duration {
    match action.peer() {
        Peer::Plugin | Peer::Informant | Peer::Metrics => Duration::from_secs(2),
        Peer::Hypervisor => Duration::from_secs(5),
    }
}
