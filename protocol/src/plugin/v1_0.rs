//! v1.0, number 1: as v1.1, and a request always has metrics.

use super::parts::same_wire;
pub(super) use super::v1_1::Response;
use super::{v1_1, v2_0};

/// What an agent says.
#[derive(Default)]
pub(super) struct Request(pub(super) v1_1::Request);

same_wire!(Request);

// === impl Request ===

impl From<Request> for v1_1::Request {
    fn from(older: Request) -> Self {
        older.0
    }
}

/// The load is what decides who is moved off a full node, the least busy first. Where it is not
/// known, the VM counts with as many tasks as vCPUs: it is not moved for want of a figure.
impl From<v1_1::Request> for Request {
    fn from(mut newer: v1_1::Request) -> Self {
        let cores = newer.0.resources.cpu.0.cores_up();
        let busy = f32::from(u16::try_from(cores).unwrap_or(u16::MAX));
        newer.0.metrics.get_or_insert(v2_0::Metrics { load_1m: busy, load_5m: busy });
        Self(newer)
    }
}
