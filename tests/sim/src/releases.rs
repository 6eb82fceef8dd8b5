//! Releases that differ: agents and books that speak other ranges of versions, from the start and
//! from one moment to the next, and VMs of which the books hear that they are about to be moved.
//!
//! In each schedule there is a version that all speak. It is drawn with a chance of its own, so
//! that whatever else a seed means stays as it is.

use crate::schedule::{Act, Turn};
use std::time::Duration;
use windlass_protocol::{PluginVersion, Versions};
use windlass_world::script::vm;
use windlass_world::{Chance, Step};

/// Releases change this often, at most.
const MOST_CHANGES: u64 = 4;
/// Schedules in which all speak what this release does, in percent.
const ALL_LATEST: u64 = 20;

/// Mixes releases into what happens.
pub(crate) fn mix(seed: u64, nodes: usize, vms: usize, turns: &mut Vec<Turn>) {
    let mut chance = Chance::new(seed ^ 0x5EED_2E1E);
    if chance.happens(ALL_LATEST) {
        return;
    }
    let shared = 1 + chance.below(u64::from(PluginVersion::SPOKEN.max.number()));
    for _ in 0..chance.below(MOST_CHANGES + 1) {
        let step = match chance.below(4) {
            0 => Step::BooksSpeak(index(&mut chance, nodes), around(&mut chance, shared)),
            1 => Step::AgentSpeaks(vm(index(&mut chance, vms)), around(&mut chance, shared)),
            _ => {
                let due = chance.happens(60);
                Step::MoveIsDue(vm(index(&mut chance, vms)), due)
            }
        };
        let at = index(&mut chance, turns.len() + 1);
        turns.insert(at, Turn { after: Duration::ZERO, act: Act::Step(step) });
    }
    let nodes = (0..nodes).map(|node| Step::BooksSpeak(node, around(&mut chance, shared)));
    let mut first: Vec<Step> = nodes.collect();
    first.extend((0..vms).map(|index| Step::AgentSpeaks(vm(index), around(&mut chance, shared))));
    let first = first.into_iter().map(|step| Turn { after: Duration::ZERO, act: Act::Step(step) });
    turns.splice(0..0, first);
}

/// A range that has `shared` in it.
fn around(chance: &mut Chance, shared: u64) -> Versions<PluginVersion> {
    let latest = u64::from(PluginVersion::SPOKEN.max.number());
    let version = |number: u64| PluginVersion::from_number(u32::try_from(number).unwrap_or(1));
    let min = 1 + chance.below(shared);
    let max = shared + chance.below(latest - shared + 1);
    Versions { min: version(min), max: version(max) }
}

/// Below `limit`, which is not zero.
fn index(chance: &mut Chance, limit: usize) -> usize {
    usize::try_from(chance.below(limit as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::draw::draw;
    use crate::schedule::Act;
    use std::collections::BTreeSet;
    use windlass_protocol::PluginVersion;
    use windlass_world::Step;

    #[test]
    fn every_version_is_the_highest_that_all_of_some_schedule_speak() {
        let mut met = BTreeSet::new();
        for seed in 0..300 {
            let mut shared = PluginVersion::SPOKEN;
            for turn in draw(seed).turns {
                if let Act::Step(Step::AgentSpeaks(_, range) | Step::BooksSpeak(_, range)) =
                    turn.act
                {
                    shared.min = shared.min.max(range.min);
                    shared.max = shared.max.min(range.max);
                }
            }
            assert!(shared.min <= shared.max, "{seed}: nothing is shared");
            met.insert(shared.max);
        }
        assert_eq!(met.len(), PluginVersion::known().count());
    }
}
