//! The bytes of v2.0, and of what is the same in every version before it.
//!
//! A size of any version is read by its form: what has `data` is of v2.0, all else is bare.

use super::{
    AgentDesc, DownscaleResult, Empty, Expected, HealthCheck, Identified, InformantDesc,
    MoreResources, ResourceMessage, Unregistered,
    v1_0::{Bare, Size},
};
use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::quantity::{CpuQuantity, MemoryQuantity};
use crate::{AgentId, BadBody, Resources, Sequence};

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

keys!(read AnySize {
    "data": data,
    "sequenceNumber": sequence,
    "cpu": cpu,
    "memory": memory,
});
keys!(read Data { "cpu": cpu, "memory": memory, "id": { "agentID": id } });

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

/// A size of any version.
#[derive(Default)]
struct AnySize {
    data: Option<Data>,
    sequence: Sequence,
    cpu: Option<CpuQuantity>,
    memory: Option<MemoryQuantity>,
}

/// What v2.0 has in `data`.
#[derive(Default)]
struct Data {
    cpu: Option<CpuQuantity>,
    memory: Option<MemoryQuantity>,
    id: AgentId,
}

// === impl ResourceMessage ===

impl ResourceMessage {
    /// Reads a request of any version.
    ///
    /// # Errors
    /// If it is not JSON, or a field holds what it must not.
    pub fn decode_any(body: &[u8]) -> Result<Self, BadBody> {
        let AnySize { data, sequence, cpu, memory } = go_json::decode_first(body)?;
        match (data, cpu.is_some() || memory.is_some()) {
            (Some(Data { cpu, memory, id }), _) => {
                Self::try_from(Amounts { cpu, memory, id, sequence })
            }
            (None, true) => Ok(Size::try_from(Bare { cpu, memory })?.into()),
            (None, false) => Self::try_from(Amounts::default()),
        }
    }
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
