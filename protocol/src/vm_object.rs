//! The object of a VM whose pod is not the VM: NeonVM's VirtualMachine, as far as the books of a plugin need it.
//!
//! A [`VmObject`] is read from the API server's JSON of a `vm.neon.tech/v1` VirtualMachine: unknown fields are ignored, and
//! `null` is as an absent field. A missing name is an error. An invalid quantity is none, since it would end the list of all
//! objects: the largest amount counts in its place; it is in [`VmObject::problems`]. Source of the fields: the
//! CustomResourceDefinition of NeonVM v0.12.2.

use crate::annotations::{self, CEILING};
use crate::config::Problem;
use crate::pod::Ceiling;
use crate::pod::wire::{Amount, Instead, Metadata, Reading};
use crate::quantity::{self, LARGEST_CPU, LARGEST_MEMORY};
use crate::{BadBody, Bytes, MilliCpu, Resources, VmName};
use serde::Deserialize;

/// The step of memory of an object that names none, as NeonVM has it.
const SLOT: Bytes = Bytes::from_mib(1 << 10);

/// The object of a VM.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Wire")]
pub struct VmObject {
    /// Namespace and name.
    pub name: VmName,
    /// The UID: an object of the same name and another UID is another VM.
    pub uid: String,
    /// `resourceVersion`: opaque, compared for equality only.
    pub revision: String,
    /// The pod that runs the VM, in the object's namespace; a VM that moves has another pod besides.
    pub pod: Option<String>,
    /// The larger of what its spec asks for, which is no more than its maximum, and of what its status shows. An axis of which
    /// neither says anything is zero.
    pub has: Resources,
    /// The recorded ceiling, if one is readable.
    pub ceiling: Option<Ceiling>,
    /// What is invalid, and what counts in its place.
    pub problems: Vec<Problem>,
}

#[derive(Deserialize)]
struct Wire {
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
struct Spec {
    guest: Option<Guest>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Guest {
    cpus: Option<Sizes>,
    memory_slot_size: Option<Amount>,
    memory_slots: Option<Sizes>,
}

#[derive(Default, Deserialize)]
struct Sizes {
    max: Option<Amount>,
    #[serde(rename = "use")]
    used: Option<Amount>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    pod_name: Option<String>,
    cpus: Option<Amount>,
    memory_size: Option<Amount>,
}

// === impl VmObject ===

impl TryFrom<Wire> for VmObject {
    type Error = BadBody;

    fn try_from(wire: Wire) -> Result<Self, BadBody> {
        let mut metadata = wire.metadata.unwrap_or_default();
        let status = wire.status.unwrap_or_default();
        let guest = wire.spec.unwrap_or_default().guest.unwrap_or_default();
        let filled = |text: &String| !text.is_empty();
        let name = metadata.take_name()?;
        let mut reading = Reading::with(Instead::Largest);
        let has = guest.asks(&mut reading).max(status.shows(&mut reading));
        let mut problems = reading.problems;
        let text = metadata.annotations.as_ref().and_then(|texts| texts.get(CEILING));
        let ceiling = text.and_then(|text| {
            let bad = |bad| problems.push(annotations::explain(CEILING, text, bad));
            Ceiling::decode(text).map_err(bad).ok()
        });
        Ok(Self {
            name,
            uid: metadata.uid.unwrap_or_default(),
            revision: metadata.resource_version.unwrap_or_default(),
            pod: status.pod_name.filter(filled),
            has,
            ceiling,
            problems,
        })
    }
}

// === impl Guest ===

impl Guest {
    /// What the spec asks for. More than the maximum, with which QEMU was started, no VM gets.
    fn asks(self, reading: &mut Reading) -> Resources {
        let (cpus, slots) = (self.cpus.unwrap_or_default(), self.memory_slots.unwrap_or_default());
        let cpu = |amount: Option<Amount>, field: &str, reading: &mut Reading| {
            amount.map(|amount| reading.read(&amount, field, quantity::cpu, LARGEST_CPU))
        };
        let used = cpu(cpus.used, "spec.guest.cpus.use", reading).unwrap_or_default();
        let max = cpu(cpus.max, "spec.guest.cpus.max", reading);
        let cpu = max.map_or(used, |max| used.min(max));

        let (field, slot) = ("spec.guest.memorySlotSize", self.memory_slot_size);
        let slot = slot.map(|it| reading.read(&it, field, quantity::memory, LARGEST_MEMORY));
        let slot = slot.unwrap_or(SLOT);
        let count = |amount: Option<Amount>, field: &str, reading: &mut Reading| {
            let largest = Bytes::from_bytes(u64::from(u16::MAX));
            amount.map(|amount| reading.read(&amount, field, quantity::memory, largest).bytes())
        };
        let used = count(slots.used, "spec.guest.memorySlots.use", reading).unwrap_or_default();
        let max = count(slots.max, "spec.guest.memorySlots.max", reading);
        let mem = slot.saturating_mul(max.map_or(used, |max| used.min(max)));
        Resources { cpu, mem }
    }
}

// === impl Status ===

impl Status {
    /// What the VM was last seen to have.
    fn shows(&self, reading: &mut Reading) -> Resources {
        let cpu = self.cpus.as_ref().map_or(MilliCpu::ZERO, |amount| {
            reading.read(amount, "status.cpus", quantity::cpu, LARGEST_CPU)
        });
        let mem = self.memory_size.as_ref().map_or(Bytes::ZERO, |amount| {
            reading.read(amount, "status.memorySize", quantity::memory, LARGEST_MEMORY)
        });
        Resources { cpu, mem }
    }
}
