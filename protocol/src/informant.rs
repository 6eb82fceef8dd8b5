//! What agent and informant say to each other: the latest model, which is that of v2.0.
//!
//! Each older version has a module of its own for what it says otherwise ([`v1_0`], [`v1_1`],
//! [`v1_2`]) and converts to the next; only the latest model leaves this crate.
//!
//! The agent calls the informant ([`REGISTER`], [`HEALTH_CHECK`], [`DOWNSCALE`], [`UPSCALE`],
//! [`UNREGISTER`]); the informant calls the agent back at the address that it registered
//! ([`ID`], [`RESUME`], [`SUSPEND`], [`TRY_UPSCALE`]). What a server reads is decoded with
//! `decode`, what a client reads with `decode_reply`: see the leniency in the crate's
//! `go_json`. Which session counts, and what a number means, is decided by the cores.

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
/// Informant to agent: [`Empty`], which must be there although it is a GET; answered by
/// [`Identified`].
pub const ID: Endpoint = Endpoint { method: "GET", path: "/id" };
/// Informant to agent: [`Expected`], answered by [`Identified`].
pub const RESUME: Endpoint = Endpoint { method: "POST", path: "/resume" };
/// Informant to agent: [`Expected`], answered by [`Identified`].
pub const SUSPEND: Endpoint = Endpoint { method: "POST", path: "/suspend" };
/// Informant to agent: [`MoreResources`], answered by [`Identified`].
pub const TRY_UPSCALE: Endpoint = Endpoint { method: "POST", path: "/try-upscale" };

/// An agent introduces itself, or takes its leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDesc {
    /// Its session.
    pub agent_id: AgentId,
    /// Where it is called back, as `ip:port`.
    pub serve_addr: String,
    /// What it speaks.
    pub versions: Versions<InformantVersion>,
}

/// The informant accepts an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InformantDesc {
    /// The version that is spoken from here on.
    pub version: InformantVersion,
    /// The port of the guest at which Prometheus metrics are read.
    pub metrics_port: Option<u16>,
}

/// An agent says who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identified {
    /// Its session.
    pub id: AgentId,
    /// The number of this message within the session.
    pub sequence: Sequence,
}

/// The informant resumes or suspends the agent that it takes the other for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected(
    /// The session that is meant.
    pub AgentId,
);

/// The guest needs more at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoreResources {
    /// The session that is meant.
    pub expected: AgentId,
    /// More vCPU.
    pub cpu: bool,
    /// More memory.
    pub memory: bool,
}

/// The agent asks whether its session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthCheck(
    /// The session that is meant.
    pub AgentId,
);

/// The agent asks the guest to be content with less, or tells it that it has more.
///
/// Below v2.0 it says neither whose it is nor which: id and number are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceMessage {
    /// The whole size.
    pub resources: Resources,
    /// The session; zero: not said.
    pub id: AgentId,
    /// The number of this message within the session; zero: not said.
    pub sequence: Sequence,
}

/// Whether the guest can live with less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownscaleResult {
    /// Whether it agrees.
    pub ok: bool,
    /// The reason, in words for a person.
    pub status: String,
}

/// The agent is gone from the informant's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unregistered {
    /// Whether its session was the one that counted.
    pub was_active: bool,
}

/// Nothing: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Empty;

// === impl ResourceMessage ===

impl ResourceMessage {
    /// Whether it is one of before v2.0, which says neither whose it is nor which.
    pub fn is_bare(&self) -> bool {
        self.id.is_zero() && self.sequence == Sequence::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_says_whose_it_is_or_which_is_not_bare() {
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
