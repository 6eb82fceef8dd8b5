//! v5.0, number 7, the latest: of the metrics, only the load over one minute is left.

use super::parts::Sized;
pub(super) use super::v4_0::Response;
use super::{Metrics as Model, OverRange, PermitRequest};
use crate::VmName;
use crate::go_json::keys;
use crate::version::PluginVersion;

/// What an agent says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Request {
    pub(super) version: PluginVersion,
    pub(super) vm: VmName,
    pub(super) unit: Option<Sized>,
    pub(super) resources: Sized,
    pub(super) last_permit: Option<Sized>,
    pub(super) metrics: Option<Metrics>,
}

/// The load over one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Metrics {
    pub(super) load_1m: f32,
}

keys!(Request {
    "protoVersion": version,
    "pod": { "namespace": vm.namespace, "name": vm.name },
    "computeUnit": unit,
    "resources": resources,
    "lastPermit": last_permit,
    "metrics": metrics,
});
keys!(Metrics { "loadAvg1M": load_1m });

// === impl Request ===

impl Request {
    pub(super) fn of(request: &PermitRequest) -> Result<Self, OverRange> {
        let unit = request.unit.map(|unit| Sized::of("computeUnit", unit)).transpose()?;
        let last = request.last_permit.map(|last| Sized::of("lastPermit", last)).transpose()?;
        let metrics = request.metrics_said();
        Ok(Self {
            version: request.version,
            vm: request.vm.clone(),
            unit,
            resources: Sized::of("resources", request.resources)?,
            last_permit: last,
            metrics: metrics.map(|Model { load_1m, .. }| Metrics { load_1m }),
        })
    }
}

impl From<Request> for PermitRequest {
    fn from(read: Request) -> Self {
        let Request { version, vm, unit, resources, last_permit, metrics } = read;
        Self {
            version,
            vm,
            unit: unit.map(Sized::resources),
            resources: resources.resources(),
            last_permit: last_permit.map(Sized::resources),
            metrics: metrics.map(|Metrics { load_1m }| Model {
                load_1m,
                load_5m: None,
                memory_usage: None,
            }),
        }
    }
}
