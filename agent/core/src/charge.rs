//! What an agent bills of a VM.

use windlass_protocol::MilliCpu;

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
