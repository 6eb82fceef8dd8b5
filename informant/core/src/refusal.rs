//! Why a request is refused, in the reference's words and with its status codes.

use crate::event::Failure;
use thiserror::Error;
use windlass_protocol::AgentId;
use windlass_protocol::version::{InformantVersion, Versions};
use windlass_protocol::words::sanitized;

/// A request that was not carried out. A stale or declined one is not refused: that is an
/// answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No version that both speak.
    #[error("Protocol version mismatch: Need {ours} but got {theirs}")]
    Versions {
        /// What we speak.
        ours: Versions<InformantVersion>,
        /// What the agent speaks.
        theirs: Versions<InformantVersion>,
    },
    /// A registration without an id.
    #[error("agentID: {0} is not the id of an agent")]
    BadId(AgentId),
    /// A text that is no address, or an address at which no agent can be called.
    #[error("agentServeAddr: \"{0}\" is not an ip:port that can be called")]
    BadAddress(String),
    /// A second registration under one id.
    #[error("Agent with ID {0} is already registered")]
    Duplicate(AgentId),
    /// Too many registrations that have not been checked yet.
    #[error("{0} registrations are under way, which is the limit")]
    Busy(usize),
    /// The agent did not say who it is when called.
    #[error("Error checking ID for agent {addr}/{agent}: {cause}")]
    Unchecked {
        /// Where it was called.
        addr: String,
        /// Which.
        agent: AgentId,
        /// What happened.
        cause: Cause,
    },
    /// The request is of an agent that does not count.
    #[error("Agent ID {0} is not the active Agent")]
    NotActive(AgentId),
    /// The agent asks whether its session stands, in a version in which that cannot be asked.
    #[error("health checks are not supported in protocol version {0}")]
    NoHealthChecks(InformantVersion),
    /// No agent is registered under this id.
    #[error("No Agent with ID {0} registered")]
    Unknown(AgentId),
    /// No agent is registered under this id, so none can unregister.
    #[error("No agent with ID \"{0}\"")]
    NotRegistered(AgentId),
    /// The address is not the one that was registered.
    #[error("Agent serverAddr is incorrect, got \"{0}\"")]
    OtherAddress(String),
}

/// Why an agent was let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// It failed to answer.
    #[error(transparent)]
    Failed(Failure),
    /// Its answer carries another id.
    #[error("it answered as {0}")]
    OtherId(AgentId),
    /// Its answer carries a number that is zero, or one that it had used before.
    #[error("it answered with sequence number {0}, which is not new")]
    OldSequence(u64),
    /// Newer agents superseded it.
    #[error("superseded by newer agents")]
    Crowded,
    /// It unregistered.
    #[error("it unregistered")]
    Unregistered,
}

// === impl Refusal ===

impl Refusal {
    /// The HTTP status that goes with it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Versions { .. }
            | Self::BadId(_)
            | Self::BadAddress(_)
            | Self::Unchecked { .. }
            | Self::NotActive(_)
            | Self::NoHealthChecks(_)
            | Self::OtherAddress(_) => 400,
            Self::Unknown(_) | Self::NotRegistered(_) => 404,
            Self::Duplicate(_) => 409,
            Self::Busy(_) => 503,
        }
    }
}

/// Text of a peer: at most sixty characters, none of which moves a terminal's cursor.
pub(crate) fn shortened(text: &str) -> String {
    sanitized(text, 60)
}
