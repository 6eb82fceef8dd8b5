//! The messages between agent and informant, in the form of the latest version, v2.0.
//!
//! Each older version has a module with its differences ([`v1_0`], [`v1_1`], [`v1_2`]) and converts to the
//! next one. Only the latest form leaves this crate.
//!
//! The agent calls the informant ([`REGISTER`], [`HEALTH_CHECK`], [`DOWNSCALE`], [`UPSCALE`],
//! [`UNREGISTER`]). The informant calls the agent back at its registered address ([`ID`], [`RESUME`],
//! [`SUSPEND`], [`TRY_UPSCALE`]). Servers use `decode` and clients `decode_reply`; `go_json` describes
//! their leniency. The cores decide which session is current and what a number means.

pub mod v1_0;
pub mod v1_1;
pub mod v1_2;
mod v2_0;

use crate::version::{InformantVersion, Versions};
use crate::{AgentId, Resources, Sequence};

/// A method and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// HTTP method.
    pub method: &'static str,
    /// Path from the root.
    pub path: &'static str,
}

/// The port on which an informant listens.
pub const PORT: u16 = 10301;

/// Agent to informant: [`AgentDesc`], answered by [`InformantDesc`].
pub const REGISTER: Endpoint = Endpoint { method: "POST", path: "/register" };
/// Agent to informant: [`HealthCheck`], answered by [`Empty`].
pub const HEALTH_CHECK: Endpoint = Endpoint { method: "PUT", path: "/health-check" };
/// Agent to informant: [`ResourceMessage`], answered by [`DownscaleResult`].
pub const DOWNSCALE: Endpoint = Endpoint { method: "PUT", path: "/downscale" };
/// Agent to informant: [`ResourceMessage`], answered by [`Empty`].
pub const UPSCALE: Endpoint = Endpoint { method: "PUT", path: "/upscale" };
/// Agent to informant: [`AgentDesc`], answered by [`Unregistered`].
pub const UNREGISTER: Endpoint = Endpoint { method: "DELETE", path: "/unregister" };
/// Informant to agent: [`Empty`], required although this is a GET; answered by [`Identified`].
pub const ID: Endpoint = Endpoint { method: "GET", path: "/id" };
/// Informant to agent: [`Expected`], answered by [`Identified`].
pub const RESUME: Endpoint = Endpoint { method: "POST", path: "/resume" };
/// Informant to agent: [`Expected`], answered by [`Identified`].
pub const SUSPEND: Endpoint = Endpoint { method: "POST", path: "/suspend" };
/// Informant to agent: [`MoreResources`], answered by [`Identified`].
pub const TRY_UPSCALE: Endpoint = Endpoint { method: "POST", path: "/try-upscale" };

/// An agent registers or unregisters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDesc {
    /// Its session.
    pub agent_id: AgentId,
    /// Its address for call-backs, as `ip:port`.
    pub serve_addr: String,
    /// The versions that it speaks.
    pub versions: Versions<InformantVersion>,
}

/// The informant accepts an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InformantDesc {
    /// The version of this session.
    pub version: InformantVersion,
    /// The guest's port for Prometheus metrics.
    pub metrics_port: Option<u16>,
}

/// An agent identifies itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identified {
    /// Its session.
    pub id: AgentId,
    /// The number of this message within the session.
    pub sequence: Sequence,
}

/// The informant resumes or suspends the agent with this session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected(pub AgentId);

/// The guest needs more resources at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoreResources {
    /// The addressed session.
    pub expected: AgentId,
    /// Whether it needs vCPUs.
    pub cpu: bool,
    /// Whether it needs memory.
    pub memory: bool,
}

/// The agent checks that its session, which is this, is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthCheck(pub AgentId);

/// The agent asks the guest for consent to a smaller size, or announces a larger size.
///
/// Before v2.0 the message has no session and no number: both are zero, and the informant takes it for a
/// new request of the agent that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceMessage {
    /// The whole size.
    pub resources: Resources,
    /// The session; zero if absent.
    pub id: AgentId,
    /// The number of this message within the session; zero if absent.
    pub sequence: Sequence,
}

/// The answer to a request for consent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownscaleResult {
    /// Whether the guest agrees.
    pub ok: bool,
    /// The reason, for a person.
    pub status: String,
}

/// The informant has removed the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unregistered {
    /// Whether its session was current.
    pub was_active: bool,
}

/// An empty object: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Empty;

// === impl ResourceMessage ===

impl ResourceMessage {
    /// Whether it has neither session nor number, as before v2.0.
    pub fn is_bare(&self) -> bool {
        self.id.is_zero() && self.sequence == Sequence::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_with_a_session_or_a_number_is_not_bare() {
        let (id, sequence) = (AgentId::from_u128(1), Sequence::from_number(8));
        let bare = ResourceMessage::default();
        assert!(bare.is_bare());
        for message in [
            ResourceMessage { id, ..bare },
            ResourceMessage { sequence, ..bare },
            ResourceMessage { id, sequence, ..bare },
        ] {
            assert!(!message.is_bare(), "{message:?}");
        }
    }
}
