//! The bytes of v2.0, and of every message that older versions share with it.
//!
//! The form of a size tells its version: in v2.0 it has `data`, before v2.0 it is bare.

use super::{
    AgentDesc, DownscaleResult, Empty, Expected, HealthCheck, Identified, InformantDesc,
    MoreResources, ResourceMessage, Unregistered,
};
use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::{AgentId, BadBody, Bytes, MilliCpu, Resources, Sequence};

keys!(AgentDesc {
    "agentID": agent_id,
    "agentServeAddr": serve_addr,
    "minProtoVersion": versions.min,
    "maxProtoVersion": versions.max,
});
keys!(Identified { "data": { "agentID": id }, "sequenceNumber": sequence });
keys!(Expected { "expectedID": 0 });
keys!(MoreResources { "cpu": cpu, "memory": memory, "expectedID": expected });
keys!(HealthCheck { "agentID": 0 });
keys!(DownscaleResult { "Ok": ok, "Status": status });
keys!(Unregistered { "wasActive": was_active });
keys!(Empty {});
keys!(Port { "port": port });

keys!(write ResourceMessage {
    "data": { "cpu": resources.cpu, "memory": resources.mem, "id": { "agentID": id } },
    "sequenceNumber": sequence,
});
keys!(read AnySize {
    "data": data,
    "sequenceNumber": sequence,
    "cpu": cpu,
    "memory": memory,
});
keys!(read Data { "cpu": cpu, "memory": memory, "id": { "agentID": id } });

/// Lets messages be encoded and decoded.
macro_rules! messages {
    ($($type:ty),+) => {$(
        impl $type {
            /// The body, byte for byte as the reference writes it.
            pub fn encode(&self) -> Vec<u8> {
                go_json::encode(self)
            }

            /// Reads a request: the first value counts, and the rest of the body is ignored.
            ///
            /// # Errors
            /// The body is not JSON, or a field holds an invalid value.
            pub fn decode(body: &[u8]) -> Result<Self, BadBody> {
                go_json::decode_first(body)
            }

            /// Reads a reply: the body must be one value and nothing else.
            ///
            /// # Errors
            /// The body is not JSON, or a field holds an invalid value.
            pub fn decode_reply(body: &[u8]) -> Result<Self, BadBody> {
                go_json::decode_whole(body)
            }
        }
    )+};
}

messages!(AgentDesc, InformantDesc, Identified, Expected, MoreResources);
messages!(HealthCheck, DownscaleResult, Unregistered, Empty);

/// `{"port":…}`.
#[derive(Clone, Copy, Default)]
struct Port {
    port: u16,
}

/// A size of any version.
#[derive(Default)]
struct AnySize {
    data: Option<Data>,
    sequence: Sequence,
    cpu: Option<MilliCpu>,
    memory: Option<Bytes>,
}

/// The content of `data`.
#[derive(Default)]
struct Data {
    cpu: Option<MilliCpu>,
    memory: Option<Bytes>,
    id: AgentId,
}

// === impl ResourceMessage ===

impl ResourceMessage {
    /// The body, byte for byte as the reference writes it.
    pub fn encode(&self) -> Vec<u8> {
        go_json::encode(self)
    }

    /// Reads a request of any version.
    ///
    /// # Errors
    /// The body is not JSON, a field holds an invalid value, or an amount is missing.
    pub fn decode_any(body: &[u8]) -> Result<Self, BadBody> {
        let AnySize { data, sequence, cpu, memory } = go_json::decode_first(body)?;
        let is_bare = data.is_none() && (cpu.is_some() || memory.is_some());
        if is_bare {
            return Ok(Self { resources: both(cpu, memory, "")?, ..Self::default() });
        }
        let Data { cpu, memory, id } = data.unwrap_or_default();
        Ok(Self { resources: both(cpu, memory, "data.")?, id, sequence })
    }
}

/// Both amounts of a size, which must not be missing.
fn both(cpu: Option<MilliCpu>, memory: Option<Bytes>, place: &str) -> Result<Resources, BadBody> {
    let missing = |field: &str| BadBody::Missing { field: format!("{place}{field}") };
    let cpu = cpu.ok_or_else(|| missing("cpu"))?;
    let mem = memory.ok_or_else(|| missing("memory"))?;
    Ok(Resources { cpu, mem })
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
