//! How much happens at one instant of virtual time.
//!
//! A world whose events bring about events of the same instant never gets to the next one: the test
//! that runs it never ends, and eats memory. Such a world panics, so that no test passes because
//! it checks one law and not this one.

use crate::world::BEGINNING;
use windlass_protocol::Moment;

/// No world handles more events than this at one instant. The most that 20,000 schedules of the
/// simulation came to is 74: a host that stopped for a while catches up with what it missed.
const MOST: u64 = 1_000;
/// So many of the last ones are told, each with so many characters.
const TOLD: u64 = 12;
const WIDTH: usize = 160;

/// The present instant, and what happened at it.
#[derive(Debug, Default)]
pub(crate) struct Instant {
    at: Moment,
    events: u64,
    last: Vec<String>,
}

// === impl Instant ===

impl Instant {
    /// One more event happens, in the world of this seed; `told` is what a reader is to see of it.
    ///
    /// # Panics
    /// Virtual time stands still.
    pub(crate) fn happens(&mut self, at: Moment, seed: u64, told: impl FnOnce() -> String) {
        if at != self.at {
            *self = Self { at, ..Self::default() };
        }
        self.events += 1;
        if self.events > MOST - TOLD {
            self.last.push(told().chars().take(WIDTH).collect());
        }
        assert!(self.events < MOST, "{}", self.stands_still(seed));
    }

    fn stands_still(&self, seed: u64) -> String {
        let since = self.at.since(BEGINNING);
        format!(
            "virtual time stands still at {since:?} after the world began: {} events at one \
             instant. The last of them:\n  {}\nThe world's seed is {seed}. A schedule of the \
             simulation is told by: make sim SIM=\"--seed {seed} --trace\"",
            self.events,
            self.last.join("\n  ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;
    use crate::world::{Step, World};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    /// Has so many events happen at one instant, which is 2 s after the beginning.
    fn crowd(world: &mut World, events: u64) {
        world.run(Duration::from_secs(2));
        for _ in 0..events {
            world.step(Step::HostMemory(0, None));
        }
        world.run(Duration::ZERO);
    }

    #[test]
    fn a_world_whose_time_stands_still_says_when_why_and_how_to_replay() {
        let mut world = script::world(1, 4, true, 4711);
        let ended = catch_unwind(AssertUnwindSafe(|| crowd(&mut world, 2 * MOST)));
        let panic = ended.unwrap_err().downcast::<String>().unwrap();
        assert!(panic.starts_with(
            "virtual time stands still at 2s after the world began: 1000 events at one instant."
        ));
        assert_eq!(panic.matches("\n  default/vm0: Notice").count(), 12, "{panic}");
        assert!(panic.ends_with("make sim SIM=\"--seed 4711 --trace\""), "{panic}");
    }

    #[test]
    fn events_of_different_instants_are_not_added_up() {
        let mut world = script::world(1, 4, true, 1);
        for _ in 0..4 {
            crowd(&mut world, MOST / 2);
        }
    }
}
