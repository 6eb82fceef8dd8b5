//! v3.0, number 5: the plugin no longer names a compute unit.

use super::parts::Slotted;
use super::parts::{Answered, Present};
pub(super) use super::v2_1::Request;
use super::{OverRange, PermitRequest, PermitResponse, v2_0, v4_0};
use crate::go_json::{self, Json, Path, Read, Write, Writer};
use crate::{BadBody, Bytes, ComputeUnit, Resources};

/// What the plugin says.
#[derive(Default)]
pub(super) struct Response {
    pub(super) permit: Answered,
    pub(super) migrate: Option<Present>,
}

/// The most slots that the wire counts.
const MOST_SLOTS: u64 = u16::MAX as u64;

// === impl Request ===

impl Request {
    /// Memory in slots of this size, rounded up.
    pub(super) fn of(request: &PermitRequest, slot: Bytes) -> Result<Self, OverRange> {
        let last = request.last_permit.map(|last| permitted(last, slot));
        Ok(Self {
            version: request.version,
            vm: request.vm.clone(),
            resources: Slotted::of("resources", request.resources, slot)?,
            last_permit: last.map(|last| Slotted::of("lastPermit", last, slot)).transpose()?,
            metrics: request.metrics_said().map(v4_0::metrics),
        })
    }

    /// With slots of this size.
    pub(super) fn with_slot(self, slot: Bytes) -> v4_0::Request {
        let Self { version, vm, resources, last_permit, metrics } = self;
        v4_0::Request {
            version,
            vm,
            unit: None,
            resources: resources.resources(slot).into(),
            last_permit: last_permit.map(|last| last.resources(slot).into()),
            metrics,
        }
    }
}

// === impl Response ===

impl Response {
    /// Memory in slots of this size, rounded down, so that no more is said than is meant.
    pub(super) fn of(response: &PermitResponse, slot: Bytes) -> Result<Self, OverRange> {
        let permit = Slotted::of("permit", permitted(response.permit, slot), slot)?;
        Ok(Self { permit: Answered(permit), migrate: response.migrate.then_some(Present) })
    }

    /// With the unit that versions before this one name: in slots rounded up, so that it is never
    /// none, and as far as the wire goes, because it is only told.
    pub(super) fn with_unit(
        self,
        unit: ComputeUnit,
        slot: Bytes,
    ) -> Result<v2_0::Response, OverRange> {
        let most = slot.saturating_mul(MOST_SLOTS);
        let unit = Resources { cpu: unit.cpu(), mem: unit.mem().min(most) };
        let Self { permit, migrate } = self;
        let unit = Answered(Slotted::of("resourceUnit", unit, slot)?);
        Ok(v2_0::Response { permit, migrate, unit })
    }

    /// With slots of this size.
    pub(super) fn with_slot(self, slot: Bytes) -> v4_0::Response {
        v4_0::Response { permit: self.permit.0.resources(slot).into(), migrate: self.migrate }
    }
}

/// The agent has a unit of its own.
impl From<v2_0::Response> for Response {
    fn from(older: v2_0::Response) -> Self {
        let v2_0::Response { permit, migrate, unit: _ } = older;
        Self { permit, migrate }
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

/// A permit in whole slots.
fn permitted(permit: Resources, slot: Bytes) -> Resources {
    Resources { cpu: permit.cpu, mem: permit.mem.round_down(slot) }
}
