//! Hosts that limit the CPU of a hypervisor's process, and what somebody else does to those limits.
//!
//! Drawn with a chance of their own, so that whatever else a seed means stays as it is.

use crate::schedule::{Act, Turn};
use std::time::Duration;
use windlass_agent_core::Order;
use windlass_protocol::{MilliCpu, VmName};
use windlass_world::script::vm;
use windlass_world::world::Grouping;
use windlass_world::{Chance, Step};

/// Schedules in which no host limits anything, in percent.
const NONE: u64 = 30;
/// Of the others, those with parts of a vCPU; and VMs that can be limited.
const PARTS: u64 = 60;
const LIMITED: u64 = 75;
/// Of those, schedules in which nobody else does anything to limits.
const LEFT_ALONE: u64 = 15;
/// Somebody does so this often, at most.
const MOST: u64 = 10;
/// What somebody sets: the most, and its step, in thousandths; an agent's limit has a coarser one.
const MOST_LIMIT: u64 = 2_500;
const STEP: u64 = 10;

/// Which VMs can be limited, and whether they have parts of a vCPU. Mixes what somebody else does to limits into
/// what happens.
pub(crate) fn mix(seed: u64, vms: usize, turns: &mut Vec<Turn>) -> (Vec<bool>, bool) {
    let mut chance = Chance::new(seed ^ 0x5EED_C6E0);
    if chance.happens(NONE) {
        return (Vec::new(), false);
    }
    let parts = chance.happens(PARTS);
    let limits = (0..vms).map(|_| chance.happens(LIMITED)).collect();
    if chance.happens(LEFT_ALONE) {
        return (limits, parts);
    }
    for _ in 0..=chance.below(MOST) {
        let of = vm(index(&mut chance, vms));
        let step = step(&mut chance, of);
        let at = index(&mut chance, turns.len() + 1);
        turns.insert(at, Turn { after: Duration::ZERO, act: Act::Step(step) });
    }
    (limits, parts)
}

fn step(chance: &mut Chance, vm: VmName) -> Step {
    let grouping = match chance.below(12) {
        0..=3 => Grouping::Limit(None),
        4..=6 => {
            let limit = STEP * (1 + chance.below(MOST_LIMIT / STEP));
            Grouping::Limit(Some(MilliCpu::from_milli(limit)))
        }
        7 => Grouping::Moves,
        8 | 9 => Grouping::Refuses(true),
        10 => Grouping::Refuses(false),
        _ => return Step::Ordered(vm, Order::Leave),
    };
    Step::Group(vm, grouping)
}

/// Below `limit`, which is not zero.
fn index(chance: &mut Chance, limit: usize) -> usize {
    usize::try_from(chance.below(limit as u64)).unwrap_or(0)
}
