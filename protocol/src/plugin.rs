//! What agent and plugin say to each other: the latest model, and its bytes in v2.0.
//!
//! The agent POSTs a [`PermitRequest`] to any path and reads a [`PermitResponse`]. This wire
//! counts memory in 16-bit slots and does not carry their size: both sides know the VM's
//! `memory_slot`. What a VM has is rounded up to whole slots; what does not fit is an error
//! that names it. The plugin learns from the body whose slot counts, so it reads a
//! [`SlotRequest`] first and completes it.

use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::quantity::{self, CpuQuantity};
use crate::version::PluginVersion;
use crate::{BadBody, Bytes, MilliCpu, Resources, VmName};
use thiserror::Error;

/// The port on which a plugin listens for permits.
pub const PORT: u16 = 10299;

/// The method of a request for a permit; every path is as good.
pub const METHOD: &str = "POST";

/// The longest body of a request that is read, in bytes.
pub const BODY_LIMIT: usize = 1024;

/// The most CPU that fits, in thousandths.
const MOST_CPU: u64 = u32::MAX as u64;

/// An agent reports what its VM has, or asks for more.
#[derive(Clone, Debug, PartialEq)]
pub struct PermitRequest {
    /// The version that the agent speaks.
    pub version: PluginVersion,
    /// Which VM.
    pub vm: VmName,
    /// What it is to have: less is a report, more is a question.
    pub resources: Resources,
    /// Its load, if it is known.
    pub metrics: Option<LoadMetrics>,
}

/// A request whose memory still counts in slots.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotRequest {
    /// The version that the agent speaks; zero if it does not say.
    pub version: PluginVersion,
    /// Which VM.
    pub vm: VmName,
    /// CPU that it is to have.
    pub cpu: MilliCpu,
    /// Memory that it is to have, in its slots.
    pub slots: u16,
    /// Its load, if it is known.
    pub metrics: Option<LoadMetrics>,
}

/// The load of a VM, as the guest's kernel averages it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadMetrics {
    /// Over one minute.
    pub load_1m: f32,
    /// Over five minutes.
    pub load_5m: f32,
}

/// What a VM may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitResponse {
    /// The most that it may use.
    pub permit: Resources,
    /// Whether the VM is going to be moved, and must keep its size until then.
    pub migrate: bool,
    /// The plugin's compute unit.
    pub unit: Resources,
}

/// An amount that the wire has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OverRange {
    /// Too much CPU.
    #[error("{field}: {value} vCPU is more than 4294967.295")]
    Cpu {
        /// Which field.
        field: &'static str,
        /// What it would hold.
        value: MilliCpu,
    },
    /// Too much memory for so small a slot.
    #[error("{field}: {value} is more than 65535 slots of {slot}")]
    Memory {
        /// Which field.
        field: &'static str,
        /// What it would hold.
        value: Bytes,
        /// The size of a slot.
        slot: Bytes,
    },
    /// A slot of no size.
    #[error("memory_slot: 0B is not above zero")]
    Slot,
}

// === impl PermitRequest ===

impl PermitRequest {
    /// The body, with memory rounded up to slots of this size.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn encode(&self, slot: Bytes) -> Result<Vec<u8>, OverRange> {
        let resources = Slotted::of("resources", self.resources, slot)?;
        // JSON has no NaN: a load that is no number is not known.
        let known = |m: &LoadMetrics| m.load_1m.is_finite() && m.load_5m.is_finite();
        Ok(go_json::encode(&RequestWire {
            version: self.version,
            namespace: self.vm.namespace.clone(),
            name: self.vm.name.clone(),
            resources,
            metrics: self.metrics.filter(known),
        }))
    }
}

// === impl SlotRequest ===

impl SlotRequest {
    /// Reads a request: the first value counts, what follows is ignored.
    ///
    /// # Errors
    /// If it is not JSON, or a field holds what it must not.
    pub fn decode(body: &[u8]) -> Result<Self, BadBody> {
        let wire: RequestWire = go_json::decode_first(body)?;
        Ok(Self {
            version: wire.version,
            vm: VmName { namespace: wire.namespace, name: wire.name },
            cpu: wire.resources.cpu.0,
            slots: wire.resources.slots,
            metrics: wire.metrics,
        })
    }

    /// What the VM is to have, with slots of this size.
    pub fn resources(&self, slot: Bytes) -> Resources {
        Resources { cpu: self.cpu, mem: slot.saturating_mul(u64::from(self.slots)) }
    }

    /// The request, with slots of this size.
    pub fn with_slot(self, slot: Bytes) -> PermitRequest {
        let resources = self.resources(slot);
        PermitRequest { version: self.version, vm: self.vm, resources, metrics: self.metrics }
    }
}

// === impl PermitResponse ===

impl PermitResponse {
    /// The body, with the permit's memory rounded down to slots of this size, so that no more is
    /// said than is meant, and the unit's rounded up, so that it is never zero.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn encode(&self, slot: Bytes) -> Result<Vec<u8>, OverRange> {
        let whole = Resources { cpu: self.permit.cpu, mem: self.permit.mem.round_down(slot) };
        Ok(go_json::encode(&ResponseWire {
            permit: Slotted::of("permit", whole, slot)?,
            migrate: self.migrate.then_some(Present),
            unit: Slotted::of("resourceUnit", self.unit, slot)?,
        }))
    }

    /// Reads a reply: one value and nothing else.
    ///
    /// # Errors
    /// If it is not JSON, or a field holds what it must not.
    pub fn decode(body: &[u8], slot: Bytes) -> Result<Self, BadBody> {
        let wire: ResponseWire = go_json::decode_whole(body)?;
        Ok(Self {
            permit: wire.permit.resources(slot),
            migrate: wire.migrate.is_some(),
            unit: wire.unit.resources(slot),
        })
    }
}

/// A request with the keys of the wire.
#[derive(Default)]
struct RequestWire {
    version: PluginVersion,
    namespace: String,
    name: String,
    resources: Slotted,
    metrics: Option<LoadMetrics>,
}

/// An answer with the keys of the wire.
#[derive(Default)]
struct ResponseWire {
    permit: Slotted,
    migrate: Option<Present>,
    unit: Slotted,
}

/// Resources whose memory counts in slots.
#[derive(Clone, Copy, Default)]
struct Slotted {
    cpu: Cpu,
    slots: u16,
}

/// CPU as a bare number if it is whole, as a quoted quantity if not.
#[derive(Clone, Copy, Default)]
struct Cpu(MilliCpu);

/// An object that says something by being there.
#[derive(Clone, Copy, Default)]
struct Present;

keys!(RequestWire {
    "protoVersion": version,
    "pod": { "namespace": namespace, "name": name },
    "resources": resources,
    "metrics": metrics,
});
keys!(Slotted { "vCPUs": cpu, "mem": slots });
keys!(LoadMetrics { "loadAvg1M": load_1m, "loadAvg5M": load_5m });
keys!(Present {});

// === impl ResponseWire ===

impl Read for ResponseWire {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        go_json::read_object(
            at,
            json,
            &mut [
                ("permit", &mut self.permit),
                ("migrate", &mut self.migrate),
                ("resourceUnit", &mut self.unit),
            ],
        )
    }
}

/// Without `migrate` where there is none.
impl Write for ResponseWire {
    fn write(&self, out: &mut Writer) {
        let mut fields: Vec<(&str, &dyn Write)> = vec![("permit", &self.permit)];
        if let Some(present) = &self.migrate {
            fields.push(("migrate", present));
        }
        fields.push(("resourceUnit", &self.unit));
        out.object(&fields);
    }
}

// === impl Slotted ===

impl Slotted {
    fn of(field: &'static str, resources: Resources, slot: Bytes) -> Result<Self, OverRange> {
        if slot.is_zero() {
            return Err(OverRange::Slot);
        }
        if resources.cpu.milli() > MOST_CPU {
            return Err(OverRange::Cpu { field, value: resources.cpu });
        }
        let slots = resources.mem.bytes().div_ceil(slot.bytes());
        let slots = u16::try_from(slots).map_err(|_| OverRange::Memory {
            field,
            value: resources.mem,
            slot,
        })?;
        Ok(Self { cpu: Cpu(resources.cpu), slots })
    }

    fn resources(self, slot: Bytes) -> Resources {
        Resources { cpu: self.cpu.0, mem: slot.saturating_mul(u64::from(self.slots)) }
    }
}

// === impl Cpu ===

impl Read for Cpu {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let cpu = go_json::read::quantity(at, json, quantity::cpu)?;
        if cpu.milli() > MOST_CPU {
            return Err(go_json::read::wrong(at, json, "at most 4294967.295 vCPU"));
        }
        self.0 = cpu;
        Ok(())
    }
}

impl Write for Cpu {
    fn write(&self, out: &mut Writer) {
        let milli = self.0.milli();
        if milli.is_multiple_of(1000) {
            out.plain(&(milli / 1000).to_string());
        } else {
            out.text(&CpuQuantity(self.0).to_string());
        }
    }
}
