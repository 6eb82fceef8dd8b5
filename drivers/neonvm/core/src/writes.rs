//! What is known of the writes that one driver has made to the object of its VM.
//!
//! A spec that is lowered while NeonVM's controller still gives the VM more does not take that back at once: the VM may have what its spec
//! asked for before until the controller says that it has what its spec says.

use crate::sizes::{self, PROMISES};
use windlass_protocol::vm_object::{Machine, MachinePhase};
use windlass_protocol::{Moment, NoSuccess, Resources, Seen};

/// Which looks count after which writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writes {
    /// The generation of the last write.
    generation: i64,
    /// Since when the outcome of a write is not known.
    unknown: Option<Moment>,
    /// What the spec asked for before, as far as the controller may not have got there, and not gone back.
    before: Resources,
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
    /// What a look at the object shows, once that has the last write in it.
    ///
    /// # Errors
    /// What the object says wrongly.
    pub fn seen(&mut self, machine: &Machine) -> Result<Seen, String> {
        let mut seen = sizes::seen(machine)?;
        let is_done = machine.phase == MachinePhase::Running;
        if is_done && machine.sizes.used.covers(machine.shows) {
            self.before = Resources::ZERO;
        }
        seen.limit = seen.limit.map(|limit| limit.max(self.before.cpu));
        let before = self.before.mem.saturating_sub(seen.memory.boot);
        seen.memory.requested = seen.memory.requested.max(before);
        Ok(seen)
    }

    /// A write of this state of the object is about to be sent. On an axis on which the VM has what its spec asks for the controller has
    /// nothing left to do.
    pub fn send(&mut self, machine: &Machine) {
        let (used, shows) = (machine.sizes.used, machine.shows);
        if used.cpu != shows.cpu {
            self.before.cpu = self.before.cpu.max(used.cpu);
        }
        if used.mem != shows.mem {
            self.before.mem = self.before.mem.max(used.mem);
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Found by the simulation: the status of a VM that grew was a step behind when its spec was lowered.
    #[test]
    fn a_vm_whose_spec_is_lowered_while_it_grows_may_have_what_was_asked_for_before() {
        let mut writes = Writes::default();
        let has = |writes: &mut Writes, machine: &Machine| {
            let size = writes.seen(machine).unwrap().upper();
            (size.cpu.milli() / 1000, size.mem.mib() / 1024)
        };
        writes.send(&machine(4, 2, "Scaling"));
        assert_eq!(has(&mut writes, &machine(1, 2, "Scaling")), (4, 4), "it may have got that");
        assert_eq!(has(&mut writes, &machine(1, 3, "Scaling")), (4, 4));
        assert_eq!(has(&mut writes, &machine(1, 1, "Scaling")), (4, 4), "the status may be behind");
        assert_eq!(has(&mut writes, &machine(1, 1, "Running")), (1, 1));
        assert_eq!(has(&mut writes, &machine(1, 1, "Scaling")), (1, 1));
    }

    /// What is asked back of it may be called off.
    #[test]
    fn a_vm_that_had_what_was_asked_for_gives_back_from_there() {
        let mut writes = Writes::default();
        writes.send(&machine(4, 4, "Running"));
        let seen = writes.seen(&machine(3, 4, "Scaling")).unwrap();
        assert!(seen.memory.requested < seen.memory.size, "{seen:?}");
    }

    /// What its spec asks for and its status shows, in vCPUs and GiB.
    fn machine(used: u64, shows: u64, phase: &str) -> Machine {
        let object = json!({
            "metadata": {"name": "a"},
            "spec": {"guest": {
                "cpus": {"min": 1, "max": 8, "use": used},
                "memorySlots": {"min": 1, "max": 8, "use": used},
            }},
            "status": {"phase": phase, "cpus": shows, "memorySize": format!("{shows}Gi")},
        });
        serde_json::from_value(object).unwrap()
    }
}
