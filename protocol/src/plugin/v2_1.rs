//! v2.1, number 4: a request names the permit that was last given, and the memory in use.

use super::parts::Slotted;
pub(super) use super::v2_0::Response;
use crate::VmName;
use crate::go_json::keys;
use crate::version::PluginVersion;

/// What an agent says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Request {
    pub(super) version: PluginVersion,
    pub(super) vm: VmName,
    pub(super) resources: Slotted,
    pub(super) last_permit: Option<Slotted>,
    pub(super) metrics: Option<Metrics>,
}

/// The load, and the memory in use in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Metrics {
    pub(super) load_1m: f32,
    pub(super) load_5m: f32,
    pub(super) memory_usage: Option<f32>,
}

keys!(Request {
    "protoVersion": version,
    "pod": { "namespace": vm.namespace, "name": vm.name },
    "resources": resources,
    "lastPermit": last_permit,
    "metrics": metrics,
});
keys!(Metrics {
    "loadAvg1M": load_1m,
    "loadAvg5M": load_5m,
    "memoryUsageBytes": memory_usage,
});
