//! What is known of the writes that one driver has made to the object of its VM.

use crate::sizes::PROMISES;
use windlass_protocol::vm_object::Machine;
use windlass_protocol::{Moment, NoSuccess};

/// Which looks count after which writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writes {
    /// The generation of the last write.
    generation: i64,
    /// Since when the outcome of a write is not known.
    unknown: Option<Moment>,
}

/// Why a write did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// It had no effect, and will have none.
    Refused,
    /// It may have taken effect, or take effect until it is [due to be settled](Writes::are_to_be_settled).
    Unknown,
}

// === impl Writes ===

impl Writes {
    /// A write was answered: with the generation after it, or with no success.
    ///
    /// # Errors
    /// What became of it otherwise.
    pub const fn answered(
        &mut self,
        now: Moment,
        answer: Result<i64, NoSuccess>,
    ) -> Result<(), Unwritten> {
        match answer {
            Ok(generation) => {
                self.show(generation);
                Ok(())
            }
            Err(why) if why.is_refusal() => Err(Unwritten::Refused),
            Err(_) => {
                self.unknown = Some(now);
                Err(Unwritten::Unknown)
            }
        }
    }

    /// Whether the object is to be read: the outcome of a write is not known, and that write can take effect no more. The watch may be
    /// behind, and silent.
    pub fn are_to_be_settled(&self, now: Moment) -> bool {
        self.unknown.is_some_and(|since| now.since(since) >= PROMISES.settles_within)
    }

    /// The object was read for that, in this generation.
    pub const fn settled(&mut self, generation: i64) {
        self.show(generation);
        self.unknown = None;
    }

    /// Whether a state of the object has the last write in it.
    pub const fn are_shown(&self, machine: &Machine) -> bool {
        machine.generation >= self.generation
    }

    const fn show(&mut self, generation: i64) {
        if generation > self.generation {
            self.generation = generation;
        }
    }
}
