//! A VirtualMachine of NeonVM as the API server writes it, as far as it is read. Every field may be absent or `null`.

use crate::pod::wire::{Amount, Metadata, Reading};
use crate::quantity::{self, LARGEST_CPU, LARGEST_MEMORY};
use crate::{Bytes, MilliCpu, Resources};
use serde::Deserialize;

/// The step of memory of an object that names none, as NeonVM has it.
const SLOT: Bytes = Bytes::from_mib(1 << 10);

/// The most slots that are read.
const LARGEST_COUNT: u64 = u16::MAX as u64;

#[derive(Deserialize)]
pub(super) struct Wire {
    pub(super) metadata: Option<Metadata>,
    pub(super) spec: Option<Spec>,
    pub(super) status: Option<Status>,
}

#[derive(Default, Deserialize)]
pub(super) struct Spec {
    pub(super) guest: Option<Guest>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Guest {
    pub(super) cpus: Option<Figures>,
    memory_slot_size: Option<Amount>,
    pub(super) memory_slots: Option<Figures>,
}

#[derive(Default, Deserialize)]
pub(super) struct Figures {
    pub(super) min: Option<Amount>,
    pub(super) max: Option<Amount>,
    #[serde(rename = "use")]
    pub(super) used: Option<Amount>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) phase: Option<String>,
    pub(super) pod_name: Option<String>,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
    pub(super) node: Option<String>,
    cpus: Option<Amount>,
    memory_size: Option<Amount>,
}

// === impl Guest ===

impl Guest {
    /// What the spec asks for. More than the maximum, with which QEMU was started, no VM gets.
    pub(super) fn asks(&self, reading: &mut Reading) -> Resources {
        let [_, (most, _), (used, _)] = named(self.cpus.as_ref());
        let cpu = cpus(used, "use", reading).unwrap_or_default();
        let cpu = cpus(most, "max", reading).map_or(cpu, |max| cpu.min(max));
        let [_, (most, _), (used, _)] = named(self.memory_slots.as_ref());
        let (slot, count) = (self.slot(reading), slots(used, "use", reading).unwrap_or_default());
        let count = slots(most, "max", reading).map_or(count, |max| count.min(max));
        let mem = slot.saturating_mul(count);
        Resources { cpu, mem }
    }

    /// The step of memory.
    pub(super) fn slot(&self, reading: &mut Reading) -> Bytes {
        let (field, slot) = ("spec.guest.memorySlotSize", &self.memory_slot_size);
        let read = |it| reading.read(it, field, quantity::memory, LARGEST_MEMORY);
        slot.as_ref().map_or(SLOT, read)
    }
}

// === impl Status ===

impl Status {
    /// What the VM was last seen to have; zero on an axis of which nothing is said.
    pub(super) fn shows(&self, reading: &mut Reading) -> Resources {
        let cpu = self.cpus.as_ref().map_or(MilliCpu::ZERO, |amount| {
            reading.read(amount, "status.cpus", quantity::cpu, LARGEST_CPU)
        });
        let mem = self.memory_size.as_ref().map_or(Bytes::ZERO, |amount| {
            reading.read(amount, "status.memorySize", quantity::memory, LARGEST_MEMORY)
        });
        Resources { cpu, mem }
    }
}

/// The minimum, the maximum and what is used, with their names.
pub(super) fn named(figures: Option<&Figures>) -> [(Option<&Amount>, &'static str); 3] {
    let figure = |of: fn(&Figures) -> Option<&Amount>| figures.and_then(of);
    [
        (figure(|it| it.min.as_ref()), "min"),
        (figure(|it| it.max.as_ref()), "max"),
        (figure(|it| it.used.as_ref()), "use"),
    ]
}

/// A figure of `spec.guest.cpus`.
pub(super) fn cpus(
    amount: Option<&Amount>,
    figure: &str,
    reading: &mut Reading,
) -> Option<MilliCpu> {
    let field = format_args!("spec.guest.cpus.{figure}");
    amount.map(|amount| reading.read(amount, field, quantity::cpu, LARGEST_CPU))
}

/// A figure of `spec.guest.memorySlots`.
pub(super) fn slots(amount: Option<&Amount>, figure: &str, reading: &mut Reading) -> Option<u64> {
    let field = format_args!("spec.guest.memorySlots.{figure}");
    let largest = Bytes::from_bytes(LARGEST_COUNT);
    amount.map(|amount| reading.read(amount, field, quantity::memory, largest).bytes())
}
