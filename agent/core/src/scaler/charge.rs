//! Whether what a VM has is this agent's to bill.
//!
//! Of several agents of one VM the one that acts bills it. One that may not act cannot tell whether
//! another does: it bills nothing, unless there is nobody who could let another one act.

use super::Scaler;
use super::counts::UNANSWERED;
use windlass_protocol::status::SessionState;
use windlass_protocol::{MilliCpu, Mode, Moment};

/// What an agent bills of a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// Nothing as long as it is not known what the VM has, or whether another agent acts.
    #[default]
    Open,
    /// Nothing: there is no VM, it is only observed, or another agent was preferred.
    Nothing,
    /// These vCPUs, as far as can be known: no informant ever took this agent on, or nobody has
    /// answered in its place for 35 s since one did, and it was not told to wait.
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
        if self.info.mode == Mode::Observe {
            return Charge::Nothing;
        }
        let cpu = match self.upper() {
            Some(upper) if !self.hypervisor_is_lost() => upper.cpu,
            Some(_) | None => return Charge::Open,
        };
        // No other agent can be told to act in a guest that stands still.
        if self.session.acts(now) || self.acted_last() {
            return Charge::Certain(cpu);
        }
        let unheard = now.since(self.session.heard_at()) >= UNANSWERED;
        // Where nobody was asked, that nobody answered says nothing.
        let gone = !self.session.has_been() || (unheard && self.session.is_unanswered());
        match self.session.status() {
            SessionState::Suspended => Charge::Nothing,
            SessionState::Absent if self.session.waits() => Charge::Nothing,
            SessionState::Absent if gone => Charge::Presumed(cpu),
            SessionState::Absent | SessionState::Registered | SessionState::Active => Charge::Open,
        }
    }
}
