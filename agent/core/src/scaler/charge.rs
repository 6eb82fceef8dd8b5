//! Whether what a VM has is this agent's to bill.
//!
//! Of several agents of one VM the one that acts bills it. An agent that may not act cannot tell
//! whether another does: it bills nothing, unless no informant is left that could let another act.

use super::Scaler;
use windlass_protocol::status::SessionState;
use windlass_protocol::{MilliCpu, Moment};

/// What an agent bills of a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// Nothing yet: what the VM has is not known, or whether another agent acts.
    #[default]
    Open,
    /// Nothing: there is no VM, it is only observed, or another agent was preferred.
    Nothing,
    /// These vCPUs, as far as can be known: no informant ever opened a session, or the informant has
    /// not answered for 35 s, and its last word was not to wait.
    Presumed(MilliCpu),
    /// These vCPUs: this agent acts.
    Certain(MilliCpu),
}

// === impl Charge ===

impl Charge {
    /// The vCPUs to bill, if there are any to bill.
    pub fn cpu(self) -> Option<MilliCpu> {
        match self {
            Self::Presumed(cpu) | Self::Certain(cpu) => Some(cpu),
            Self::Open | Self::Nothing => None,
        }
    }

    /// Whether it was found out, so that nothing that is under way makes it another.
    pub fn is_settled(self) -> bool {
        match self {
            Self::Nothing | Self::Certain(_) => true,
            Self::Open | Self::Presumed(_) => false,
        }
    }
}

// === impl Scaler ===

impl Scaler {
    /// What this agent bills of the VM: the vCPUs that the books must cover, so a guest that says
    /// that it uses fewer is believed as far as the books believe it. Old figures are not billed.
    pub fn charge(&self, now: Moment) -> Charge {
        if self.orders.observes() {
            return Charge::Nothing;
        }
        let cpu = match self.upper() {
            Some(upper) if !self.hypervisor.is_lost() => upper.cpu,
            Some(_) | None => return Charge::Open,
        };
        // No other agent can be told to act in a guest that stands still: the one that acted when its
        // guest was found to is the only one.
        let session = &self.informant.session;
        if session.is_leased(now) || (self.signals.stopped_while_acting() && session.is_active()) {
            return Charge::Certain(cpu);
        }
        // Silence proves nothing unless the agent sent a request.
        let gone = !session.has_been() || (self.is_unheard(now) && session.is_unanswered());
        match session.status() {
            SessionState::Suspended => Charge::Nothing,
            SessionState::Absent if session.waits() => Charge::Nothing,
            SessionState::Absent if gone => Charge::Presumed(cpu),
            SessionState::Absent | SessionState::Registered | SessionState::Active => Charge::Open,
        }
    }
}
