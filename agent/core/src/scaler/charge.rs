//! Whether what a VM has is this agent's to bill.
//!
//! Of several agents of one VM the one that acts bills it. One that may not act cannot tell whether
//! another does: it bills nothing, unless there is nobody who could let another one act.

use super::Scaler;
use crate::charge::Charge;
use windlass_protocol::status::SessionState;
use windlass_protocol::timing::INFORMANT_GONE;
use windlass_protocol::{Mode, Moment};

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
        let unheard = now.since(self.session.heard_at()) >= INFORMANT_GONE;
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
