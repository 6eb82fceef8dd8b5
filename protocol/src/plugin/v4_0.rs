//! v4.0, number 6: memory in bytes, and the agent's compute unit in every request.

use super::parts::{Present, Sized};
use super::{Metrics as Model, OverRange, PermitRequest, PermitResponse, v5_0};
use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::version::PluginVersion;
use crate::{BadBody, VmName};

pub(super) use super::v2_1::Metrics;

/// What an agent says.
#[derive(Default)]
pub(super) struct Request {
    pub(super) version: PluginVersion,
    pub(super) vm: VmName,
    pub(super) unit: Option<Sized>,
    pub(super) resources: Sized,
    pub(super) last_permit: Option<Sized>,
    pub(super) metrics: Option<Metrics>,
}

/// What the plugin says.
#[derive(Default)]
pub(super) struct Response {
    pub(super) permit: Sized,
    pub(super) migrate: Option<Present>,
}

keys!(Request {
    "protoVersion": version,
    "pod": { "namespace": vm.namespace, "name": vm.name },
    "computeUnit": unit,
    "resources": resources,
    "lastPermit": last_permit,
    "metrics": metrics,
});

// === impl Request ===

impl Request {
    pub(super) fn of(request: &PermitRequest) -> Result<Self, OverRange> {
        let v5_0::Request { version, vm, unit, resources, last_permit, metrics: _ } =
            v5_0::Request::of(request)?;
        let metrics = request.metrics_said().map(metrics);
        Ok(Self { version, vm, unit, resources, last_permit, metrics })
    }
}

impl From<Request> for v5_0::Request {
    fn from(older: Request) -> Self {
        let Request { version, vm, unit, resources, last_permit, metrics } = older;
        let metrics = metrics.map(|metrics| v5_0::Metrics { load_1m: metrics.load_1m });
        Self { version, vm, unit, resources, last_permit, metrics }
    }
}

/// As versions before v5.0 have them; what they need is there.
pub(super) fn metrics(metrics: Model) -> Metrics {
    Metrics {
        load_1m: metrics.load_1m,
        load_5m: metrics.load_5m.unwrap_or_default(),
        memory_usage: metrics.memory_usage,
    }
}

// === impl Response ===

impl Response {
    pub(super) fn of(response: &PermitResponse) -> Result<Self, OverRange> {
        let permit = Sized::of("permit", response.permit)?;
        Ok(Self { permit, migrate: response.migrate.then_some(Present) })
    }
}

impl From<Response> for PermitResponse {
    fn from(read: Response) -> Self {
        Self { permit: read.permit.resources(), migrate: read.migrate.is_some() }
    }
}

impl Read for Response {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let fields: &mut [(&str, &mut dyn Read)] =
            &mut [("permit", &mut self.permit), ("migrate", &mut self.migrate)];
        go_json::read_object(at, json, fields)
    }
}

/// Without `migrate` if the VM is not about to be moved.
impl Write for Response {
    fn write(&self, out: &mut Writer) {
        let mut fields: Vec<(&str, &dyn Write)> = vec![("permit", &self.permit)];
        if let Some(present) = &self.migrate {
            fields.push(("migrate", present));
        }
        out.object(&fields);
    }
}
