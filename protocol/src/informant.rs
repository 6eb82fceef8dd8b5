//! What agent and informant say to each other: the latest model, and its bytes in v2.0.
//!
//! The agent calls the informant ([`REGISTER`], [`HEALTH_CHECK`], [`DOWNSCALE`], [`UPSCALE`],
//! [`UNREGISTER`]); the informant calls the agent back at the address that it registered
//! ([`ID`], [`RESUME`], [`SUSPEND`], [`TRY_UPSCALE`]). What a server reads is decoded with
//! `decode`, what a client reads with `decode_reply`: see the leniency in the crate's
//! `go_json`. Which session counts, and what a number means, is decided by the cores.

use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::quantity::{CpuQuantity, MemoryQuantity};
use crate::version::{InformantVersion, Versions};
use crate::{AgentId, BadBody, Resources, Sequence};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceMessage {
    /// The whole size.
    pub resources: Resources,
    /// The session.
    pub id: AgentId,
    /// The number of this message within the session.
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

keys!(AgentDesc {
    "agentID": agent_id,
    "agentServeAddr": serve_addr,
    "minProtoVersion": versions.min,
    "maxProtoVersion": versions.max,
});
keys!(Identified { "data": { "agentID": id }, "sequenceNumber": sequence });
keys!(MoreResources { "cpu": cpu, "memory": memory, "expectedID": expected });
keys!(DownscaleResult { "Ok": ok, "Status": status });
keys!(Unregistered { "wasActive": was_active });
keys!(Empty {});
keys!(Named { "agentID": id });
keys!(Expecting { "expectedID": id });
keys!(Port { "port": port });
keys!(Amounts {
    "data": { "cpu": cpu, "memory": memory, "id": { "agentID": id } },
    "sequenceNumber": sequence,
});

/// Gives a message its bytes: read as itself, or by way of the private form that has its keys.
macro_rules! message {
    ($type:ty) => {
        message!($type, $type);
    };
    ($type:ty, $wire:ty) => {
        impl $type {
            /// The body, byte for byte as the reference writes it.
            pub fn encode(&self) -> Vec<u8> {
                go_json::encode(&<$wire>::from(self.clone()))
            }

            /// Reads a request: the first value counts, what follows is ignored.
            ///
            /// # Errors
            /// If it is not JSON, or a field holds what it must not.
            pub fn decode(body: &[u8]) -> Result<Self, BadBody> {
                Self::try_from(go_json::decode_first::<$wire>(body)?).map_err(BadBody::from)
            }

            /// Reads a reply: one value and nothing else.
            ///
            /// # Errors
            /// If it is not JSON, or a field holds what it must not.
            pub fn decode_reply(body: &[u8]) -> Result<Self, BadBody> {
                Self::try_from(go_json::decode_whole::<$wire>(body)?).map_err(BadBody::from)
            }
        }
    };
}

message!(AgentDesc);
message!(InformantDesc);
message!(Identified);
message!(Expected, Expecting);
message!(MoreResources);
message!(HealthCheck, Named);
message!(ResourceMessage, Amounts);
message!(DownscaleResult);
message!(Unregistered);
message!(Empty);

/// `{"agentID":…}`.
#[derive(Clone, Copy, Default)]
struct Named {
    id: AgentId,
}

/// `{"expectedID":…}`.
#[derive(Clone, Copy, Default)]
struct Expecting {
    id: AgentId,
}

/// `{"port":…}`.
#[derive(Clone, Copy, Default)]
struct Port {
    port: u16,
}

/// A resource message whose amounts may be missing.
#[derive(Default)]
struct Amounts {
    cpu: Option<CpuQuantity>,
    memory: Option<MemoryQuantity>,
    id: AgentId,
    sequence: Sequence,
}

// === impl InformantDesc ===

impl Read for InformantDesc {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let mut prometheus = self.metrics_port.map(|port| Port { port });
        go_json::read_object(
            at,
            json,
            &mut [
                ("protoVersion", &mut self.version),
                (
                    "metricsMethod",
                    &mut go_json::read::Group(&mut [("prometheus", &mut prometheus)]),
                ),
            ],
        )?;
        self.metrics_port = prometheus.map(|prometheus| prometheus.port);
        Ok(())
    }
}

impl Write for InformantDesc {
    fn write(&self, out: &mut Writer) {
        let port = self.metrics_port.map(|port| Port { port });
        let method = port.as_ref().map(|port| [("prometheus", port as &dyn Write)]);
        let method: &[(&str, &dyn Write)] = method.as_ref().map_or(&[], |method| method);
        out.object(&[
            ("protoVersion", &self.version),
            ("metricsMethod", &go_json::write::Group(method)),
        ]);
    }
}

// === conversions between messages and the forms that have their keys ===

impl From<Expected> for Expecting {
    fn from(message: Expected) -> Self {
        Self { id: message.0 }
    }
}

impl From<Expecting> for Expected {
    fn from(wire: Expecting) -> Self {
        Self(wire.id)
    }
}

impl From<HealthCheck> for Named {
    fn from(message: HealthCheck) -> Self {
        Self { id: message.0 }
    }
}

impl From<Named> for HealthCheck {
    fn from(wire: Named) -> Self {
        Self(wire.id)
    }
}

impl From<ResourceMessage> for Amounts {
    fn from(message: ResourceMessage) -> Self {
        Self {
            cpu: Some(CpuQuantity(message.resources.cpu)),
            memory: Some(MemoryQuantity(message.resources.mem)),
            id: message.id,
            sequence: message.sequence,
        }
    }
}

impl TryFrom<Amounts> for ResourceMessage {
    type Error = BadBody;

    fn try_from(wire: Amounts) -> Result<Self, BadBody> {
        let missing = |field: &str| BadBody::Missing { field: field.to_owned() };
        Ok(Self {
            resources: Resources {
                cpu: wire.cpu.ok_or_else(|| missing("data.cpu"))?.0,
                mem: wire.memory.ok_or_else(|| missing("data.memory"))?.0,
            },
            id: wire.id,
            sequence: wire.sequence,
        })
    }
}
