//! The shell of a scaler: sends what it plans, and reports what becomes of it.

use crate::lease::Lease;
use crate::queue::{Alarm, Place};
use std::collections::BTreeMap;
use windlass_agent_core::{Action, HeldAnswers, Scaler};
use windlass_protocol::{AgentId, Moment, Peer, Resources};

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
    /// What the VM had, as far as it knew, when it last asked for a permit.
    pub(crate) found: Resources,
    /// It has heard, since the hypervisor last ran the VM as usual, that it does not.
    pub(crate) knows_stopped: bool,
    /// When it is next woken.
    pub(crate) alarm: Alarm,
    /// Answers that wait until nothing is under way.
    pub(crate) held: HeldAnswers<Called>,
    /// Until when its informant's answers let it act, true ones and false ones.
    pub(crate) lease: Lease,
}

/// A call under way: its number, and what it is for.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    call: u64,
    asked: Asked,
}

/// What a call was for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) action: Action,
    /// When it left, by the agent's clock.
    pub(crate) at: Moment,
    /// Where it is hung up.
    pub(crate) hangs_up: Place,
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
            found: Resources::ZERO,
            knows_stopped: false,
            alarm: Alarm::default(),
            held: HeldAnswers::default(),
            lease: Lease::default(),
        }
    }

    /// The number of the next call.
    pub(crate) fn next_call(&mut self) -> u64 {
        self.last_call += 1;
        self.last_call
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, call: u64, asked: Asked) {
        self.calls.insert(asked.action.peer(), UnderWay { call, asked });
    }

    /// The call to this peer that is waited for.
    pub(crate) fn waits_for(&self, peer: Peer) -> Option<u64> {
        self.calls.get(&peer).map(|under_way| under_way.call)
    }

    /// What this call to `peer` was for, if it is the one that is waited for; it is so once.
    pub(crate) fn finish(&mut self, peer: Peer, call: u64) -> Option<Asked> {
        let UnderWay { asked, .. } =
            *self.calls.get(&peer).filter(|under_way| under_way.call == call)?;
        self.calls.remove(&peer);
        Some(asked)
    }
}
