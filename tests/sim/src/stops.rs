//! Hypervisors that pause, save or migrate their VM for a while.
//!
//! Drawn with a chance of their own, so that whatever else a seed means stays as it is.

use crate::schedule::{Act, Turn};
use std::time::Duration;
use windlass_protocol::RunState;
use windlass_world::script::vm;
use windlass_world::{Chance, Step};

/// A hypervisor does so this often in a schedule, at most.
const MOST: u64 = 4;
/// Schedules in which none does, in percent.
const NONE: u64 = 40;
/// The longest, in milliseconds, and how many are short.
const LONGEST: u64 = 30_000;
const SHORT: u64 = 1_500;

/// Mixes stops into what happens.
pub(crate) fn mix(seed: u64, vms: usize, turns: &mut Vec<Turn>) {
    let mut chance = Chance::new(seed ^ 0x5EED_0570);
    if chance.happens(NONE) {
        return;
    }
    for _ in 0..=chance.below(MOST) {
        let state = match chance.below(5) {
            0 => RunState::Migrating,
            1 => RunState::Saving,
            2 => RunState::Failed,
            _ => RunState::Paused,
        };
        let longest = if chance.happens(30) { SHORT } else { LONGEST };
        let time = Duration::from_millis(chance.below(longest));
        let step = Step::Stands(vm(index(&mut chance, vms)), state, time);
        let at = index(&mut chance, turns.len() + 1);
        turns.insert(at, Turn { after: Duration::ZERO, act: Act::Step(step) });
    }
}

/// Below `limit`, which is not zero.
fn index(chance: &mut Chance, limit: usize) -> usize {
    usize::try_from(chance.below(limit as u64)).unwrap_or(0)
}
