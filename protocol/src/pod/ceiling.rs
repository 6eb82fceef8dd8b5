//! The ceiling of a VM: the largest size that it may have been promised.
//!
//! A plugin writes the ceiling to the annotation `windlass.dev/ceiling` before it answers a permit above
//! the recorded one: `{"epoch":1,"cpu":"2","memory":"4Gi"}`. A later leader reads what an earlier one may
//! have promised. A VM without a readable ceiling counts with its maximum.

use crate::go_json::{self, Write, Writer, keys};
use crate::{BadBody, Bytes, MilliCpu, Resources};

/// A recorded ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The epoch of the leader that recorded it; a later leader has a higher one.
    pub epoch: u64,
    /// The largest promised size; each axis at most 2⁶³ − 1 of its smallest unit.
    pub size: Resources,
}

#[derive(Default)]
struct Said {
    epoch: Option<u64>,
    cpu: Option<MilliCpu>,
    memory: Option<Bytes>,
}

keys!(Said { "epoch": epoch, "cpu": cpu, "memory": memory });

// === impl Ceiling ===

impl Ceiling {
    /// The annotation's text.
    pub fn encode(&self) -> String {
        let Resources { cpu, mem } = self.size;
        let said = Said { epoch: Some(self.epoch), cpu: Some(cpu), memory: Some(mem) };
        String::from_utf8_lossy(&go_json::encode(&said)).into_owned()
    }

    /// Reads the annotation's text. Keys of a later version are ignored.
    ///
    /// # Errors
    /// The text is not one JSON object, a field is missing, or a field is invalid: a whole number, a
    /// quantity of CPU, a quantity of memory.
    pub fn decode(text: &str) -> Result<Self, BadBody> {
        let Said { epoch, cpu, memory } = go_json::decode_whole(text.as_bytes())?;
        let missing = |field: &str| BadBody::Missing { field: field.to_owned() };
        Ok(Self {
            epoch: epoch.ok_or_else(|| missing("epoch"))?,
            size: Resources {
                cpu: cpu.ok_or_else(|| missing("cpu"))?,
                mem: memory.ok_or_else(|| missing("memory"))?,
            },
        })
    }
}

impl Write for u64 {
    fn write(&self, out: &mut Writer) {
        out.plain(&self.to_string());
    }
}
