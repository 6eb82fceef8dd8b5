//! Amounts in what agent and plugin say: CPU, and memory in slots or in bytes.

use super::OverRange;
use crate::go_json::{self, Json, Parser, Path, Read, Write, Writer};
use crate::quantity;
use crate::{BadBody, Bytes, MilliCpu, Resources};

/// The most CPU that fits, in thousandths.
pub(super) const MOST_CPU: MilliCpu = MilliCpu::from_milli(u32::MAX as u64);

/// Resources whose memory is a number of slots (`u16`, or [`Slots`] in an answer) or [`Memory`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size<M> {
    pub(super) cpu: Cpu,
    pub(super) mem: M,
}

/// How memory counts in a version.
pub(super) trait Counted: Copy + Default + Read + Write {
    /// This amount, in slots rounded up.
    fn of(field: &'static str, mem: Bytes, slot: Bytes) -> Result<Self, OverRange>;

    /// The amount, with slots of this size.
    fn bytes(self, slot: Bytes) -> Bytes;
}

/// CPU as a bare number if it is whole, as a quoted quantity if not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cpu(pub(super) MilliCpu);

/// Memory as a quoted quantity; less than 1 KiB as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Memory(Bytes);

/// Slots as a number, or as a quantity: a plugin that counts in bytes writes 1024 and more so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slots(pub(super) u16);

// === impl Size ===

impl<M: Counted> Size<M> {
    pub(super) fn of(
        field: &'static str,
        resources: Resources,
        slot: Bytes,
    ) -> Result<Self, OverRange> {
        let cpu = Cpu::of(field, resources.cpu)?;
        Ok(Self { cpu, mem: M::of(field, resources.mem, slot)? })
    }

    pub(super) fn resources(self, slot: Bytes) -> Resources {
        Resources { cpu: self.cpu.0, mem: self.mem.bytes(slot) }
    }
}

impl<M: Read> Read for Size<M> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        go_json::read_object(at, json, &mut [("vCPUs", &mut self.cpu), ("mem", &mut self.mem)])
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        go_json::read_written(from, &mut [("vCPUs", &mut self.cpu), ("mem", &mut self.mem)])
    }
}

impl<M: Write> Write for Size<M> {
    fn write(&self, out: &mut Writer) {
        out.object(&[("vCPUs", &self.cpu), ("mem", &self.mem)]);
    }
}

// === impl Counted ===

impl Counted for u16 {
    fn of(field: &'static str, mem: Bytes, slot: Bytes) -> Result<Self, OverRange> {
        if slot.is_zero() {
            return Err(OverRange::Slot);
        }
        let slots = mem.bytes().div_ceil(slot.bytes());
        Self::try_from(slots).map_err(|_| OverRange::Memory(field, mem, slot))
    }

    fn bytes(self, slot: Bytes) -> Bytes {
        slot.saturating_mul(u64::from(self))
    }
}

impl Counted for Memory {
    fn of(field: &'static str, mem: Bytes, _: Bytes) -> Result<Self, OverRange> {
        let fits = mem <= quantity::LARGEST_MEMORY;
        if fits { Ok(Self(mem)) } else { Err(OverRange::Bytes(field, mem)) }
    }

    fn bytes(self, _: Bytes) -> Bytes {
        self.0
    }
}

// === impl Slots ===

impl Read for Slots {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let Json::Text(_) = json else { return self.0.read(at, json) };
        let count = go_json::read::quantity(at, json, quantity::memory)?;
        self.0 = u16::try_from(count.bytes())
            .map_err(|_| BadBody::field(at, json, "a whole number from 0 to 65535"))?;
        Ok(())
    }
}

// === impl Cpu ===

impl Cpu {
    pub(super) fn of(field: &'static str, cpu: MilliCpu) -> Result<Self, OverRange> {
        if cpu > MOST_CPU { Err(OverRange::Cpu(field, cpu)) } else { Ok(Self(cpu)) }
    }
}

impl Read for Cpu {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let cpu = go_json::read::quantity(at, json, quantity::cpu)?;
        if cpu > MOST_CPU {
            return Err(BadBody::field(at, json, "at most 4294967.295 vCPU"));
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
        if self.0.bytes() < 1024 {
            out.plain(&self.0.bytes().to_string());
        } else {
            self.0.write(out);
        }
    }
}
