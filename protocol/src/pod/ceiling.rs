//! The ceiling of a VM: the largest size that it may have been promised.
//!
//! A plugin writes the ceiling to the annotation `windlass.dev/ceiling` before it answers a permit above
//! the recorded one: `{"epoch":1,"write":2,"cpu":"2","memory":"4Gi"}`. A later leader reads what an earlier
//! one may have promised. A VM without a readable ceiling counts with its maximum.
//!
//! Each write has a higher number than the ceiling that it replaces, so no text returns: a late write that
//! tests an earlier text changes nothing. Whoever may change the pod may forge a number: one after which there is none left for
//! the next writes makes the text unreadable.

use crate::go_json::{self, Write, Writer, keys};
use crate::{BadBody, Bytes, MilliCpu, Resources};

/// A recorded ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The epoch of the leader that recorded it; a later leader has a higher one.
    pub epoch: u64,
    /// The number of the write, from 1 for the binding of the pod; 0: not numbered. At most [`Ceiling::LAST_WRITE`].
    pub write: u64,
    /// The largest promised size; each axis at most 2⁶³ − 1 of its smallest unit.
    pub size: Resources,
}

#[derive(Default)]
struct Said {
    epoch: Option<u64>,
    write: Option<u64>,
    cpu: Option<MilliCpu>,
    memory: Option<Bytes>,
}

keys!(Said { "epoch": epoch, "write": write, "cpu": cpu, "memory": memory });

#[derive(Default)]
struct Unnumbered {
    epoch: u64,
    cpu: MilliCpu,
    memory: Bytes,
}

keys!(Unnumbered { "epoch": epoch, "cpu": cpu, "memory": memory });

// === impl Ceiling ===

impl Ceiling {
    /// The highest number of a write; a text with a higher one is unreadable.
    pub const LAST_WRITE: u64 = u64::MAX / 2;

    /// Orders the ceilings of a VM by the time of their recording.
    pub const fn order(&self) -> (u64, u64) {
        (self.epoch, self.write)
    }

    /// The annotation's text.
    pub fn encode(&self) -> String {
        let (Resources { cpu, mem: memory }, epoch) = (self.size, self.epoch);
        let text = if self.write == 0 {
            go_json::encode(&Unnumbered { epoch, cpu, memory })
        } else {
            let (epoch, write) = (Some(epoch), Some(self.write));
            go_json::encode(&Said { epoch, write, cpu: Some(cpu), memory: Some(memory) })
        };
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Reads the annotation's text. Keys of a later version are ignored.
    ///
    /// # Errors
    /// The text is not one JSON object, a field is missing, or a field is invalid: a whole number, a
    /// quantity of CPU, a quantity of memory.
    pub fn decode(text: &str) -> Result<Self, BadBody> {
        let Said { epoch, write, cpu, memory } = go_json::decode_whole(text.as_bytes())?;
        let missing = |field: &str| BadBody::Missing { field: field.to_owned() };
        if let Some(write) = write.filter(|write| *write > Self::LAST_WRITE) {
            let expected = format!("a whole number from 0 to {}", Self::LAST_WRITE);
            return Err(BadBody::field("write", write, expected));
        }
        Ok(Self {
            epoch: epoch.ok_or_else(|| missing("epoch"))?,
            write: write.unwrap_or(0),
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
