//! The parts that messages of several versions are made of.

use super::OverRange;
use crate::go_json::{self, Json, Path, Read, Write, Writer, keys};
use crate::quantity;
use crate::{BadBody, Bytes, MilliCpu, Resources};

/// The most CPU that fits, in thousandths.
pub(super) const MOST_CPU: MilliCpu = MilliCpu::from_milli(u32::MAX as u64);

/// Below this, memory is written as a bare number.
const BARE_BELOW: u64 = 1024;

/// Resources whose memory counts in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slotted {
    pub(super) cpu: Cpu,
    pub(super) slots: u16,
}

/// The same in an answer: a plugin that counts in bytes writes 1024 and more as a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Answered(pub(super) Slotted);

/// Resources whose memory counts in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sized {
    cpu: Cpu,
    mem: Memory,
}

/// CPU as a bare number if it is whole, as a quoted quantity if not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cpu(pub(super) MilliCpu);

/// Memory as a quoted quantity; less than 1 KiB as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Memory(Bytes);

/// Slots as a number, or as a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slots(u16);

/// An object that says something by being there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Present;

keys!(Slotted { "vCPUs": cpu, "mem": slots });
keys!(Sized { "vCPUs": cpu, "mem": mem });
keys!(Present {});

/// Lets a message be read and written as the one that it wraps.
macro_rules! same_wire {
    ($type:ty) => {
        impl $crate::go_json::Read for $type {
            fn read(
                &mut self,
                at: &$crate::go_json::Path<'_>,
                json: &$crate::go_json::Json,
            ) -> Result<(), $crate::BadBody> {
                self.0.read(at, json)
            }
        }

        impl $crate::go_json::Write for $type {
            fn write(&self, out: &mut $crate::go_json::Writer) {
                self.0.write(out);
            }
        }
    };
}

pub(super) use same_wire;

// === impl Slotted ===

impl Slotted {
    pub(super) fn of(
        field: &'static str,
        resources: Resources,
        slot: Bytes,
    ) -> Result<Self, OverRange> {
        if slot.is_zero() {
            return Err(OverRange::Slot);
        }
        let cpu = Cpu::of(field, resources.cpu)?;
        let slots = resources.mem.bytes().div_ceil(slot.bytes());
        let slots = u16::try_from(slots).map_err(|_| OverRange::Memory {
            field,
            value: resources.mem,
            slot,
        })?;
        Ok(Self { cpu, slots })
    }

    pub(super) fn resources(self, slot: Bytes) -> Resources {
        Resources { cpu: self.cpu.0, mem: slot.saturating_mul(u64::from(self.slots)) }
    }
}

// === impl Answered ===

impl Read for Answered {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let mut slots = Slots(self.0.slots);
        let fields: &mut [(&str, &mut dyn Read)] =
            &mut [("vCPUs", &mut self.0.cpu), ("mem", &mut slots)];
        go_json::read_object(at, json, fields)?;
        self.0.slots = slots.0;
        Ok(())
    }
}

impl Write for Answered {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }
}

// === impl Slots ===

impl Read for Slots {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let Json::Text(_) = json else { return self.0.read(at, json) };
        let count = go_json::read::quantity(at, json, quantity::memory)?;
        self.0 = u16::try_from(count.bytes())
            .map_err(|_| go_json::read::wrong(at, json, "a whole number from 0 to 65535"))?;
        Ok(())
    }
}

// === impl Sized ===

impl Sized {
    pub(super) fn of(field: &'static str, resources: Resources) -> Result<Self, OverRange> {
        let cpu = Cpu::of(field, resources.cpu)?;
        if resources.mem > quantity::LARGEST_MEMORY {
            return Err(OverRange::Bytes { field, value: resources.mem });
        }
        Ok(Self { cpu, mem: Memory(resources.mem) })
    }

    pub(super) fn resources(self) -> Resources {
        Resources { cpu: self.cpu.0, mem: self.mem.0 }
    }
}

/// From slots, once their size is known.
impl From<Resources> for Sized {
    fn from(resources: Resources) -> Self {
        Self { cpu: Cpu(resources.cpu), mem: Memory(resources.mem) }
    }
}

// === impl Cpu ===

impl Cpu {
    fn of(field: &'static str, cpu: MilliCpu) -> Result<Self, OverRange> {
        if cpu > MOST_CPU { Err(OverRange::Cpu { field, value: cpu }) } else { Ok(Self(cpu)) }
    }
}

impl Read for Cpu {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let cpu = go_json::read::quantity(at, json, quantity::cpu)?;
        if cpu > MOST_CPU {
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
            self.0.write(out);
        }
    }
}

// === impl Memory ===

impl Read for Memory {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        self.0.read(at, json)
    }
}

impl Write for Memory {
    fn write(&self, out: &mut Writer) {
        if self.0.bytes() < BARE_BELOW {
            out.plain(&self.0.bytes().to_string());
        } else {
            self.0.write(out);
        }
    }
}
