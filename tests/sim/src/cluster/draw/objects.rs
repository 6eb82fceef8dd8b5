//! Where some VMs have objects of their own: every second name is one of these, and what is done to the agent of a VM of such a name
//! is done to the agent of a node.

use super::{put_in, to_usize};
use crate::cluster::Turn;
use std::time::Duration;
use windlass_world::Chance;
use windlass_world::cluster::Step;
use windlass_world::cluster::steps::NAMES;

/// Makes VMs have objects, and has these and the agents of nodes meet more.
pub(super) fn put(nodes: usize, turns: &mut Vec<Turn>, chance: &mut Chance) {
    for turn in &mut *turns {
        turn.step = instead(turn.step, nodes, chance);
    }
    let some = |chance: &mut Chance, of: &[u64]| of[to_usize(chance.below(of.len() as u64))];
    for _ in 0..2 + chance.below(5) {
        let step = Step::Move { name: name(chance), fails: chance.happens(25) };
        put_in(turns, (10, 100), step, chance);
    }
    for _ in 0..2 + chance.below(6) {
        let node = to_usize(chance.below(nodes as u64));
        let step = match chance.below(4) {
            0 => Step::AgentKill(node, some(chance, &[300, 1_500, 6_000, 20_000])),
            1 => Step::AgentLeave(node),
            2 => Step::AgentStop(node, some(chance, &[1_500, 6_000, 15_000])),
            _ => Step::AgentCut(node),
        };
        put_in(turns, (5, 100), step, chance);
    }
    // All agents are replaced, one after the other.
    if chance.happens(30) {
        for node in 0..nodes {
            put_in(turns, (20 + 20 * node, 40 + 20 * node), Step::AgentLeave(node), chance);
        }
    }
    if chance.happens(20) {
        put_in(turns, (20, 100), Step::Unlabel(name(chance)), chance);
    }
    for _ in 0..2 + chance.below(2) {
        outdate(nodes, turns, chance);
    }
}

/// Nodes are cordoned, one after the other or at a time, and uncordoned.
pub(super) fn drain(nodes: usize, turns: &mut Vec<Turn>, chance: &mut Chance) {
    for _ in 0..1 + chance.below(4) {
        let node = to_usize(chance.below(nodes as u64));
        let step = Step::Cordon { node, time: 3_000 + chance.below(40_000) };
        put_in(turns, (5, 95), step, chance);
    }
    // One stays so to the end.
    if chance.happens(50) {
        let node = to_usize(chance.below(nodes as u64));
        put_in(turns, (80, 100), Step::Cordon { node, time: 3_600_000 }, chance);
    }
}

/// A VM gets another pod, or another object of its name, while all agents stand still: what they write then was looked at before.
fn outdate(nodes: usize, turns: &mut Vec<Turn>, chance: &mut Chance) {
    let name = name(chance);
    let vm = |units| Step::Machine { name, units, most: 4, least: 1 };
    let mut steps =
        vec![(100, vm(2)), (6_000 + chance.below(9_000), Step::Goal { name, units: 2 })];
    steps.extend((0..nodes).map(|node| (1, Step::AgentStop(node, 5_500))));
    steps.push((1, Step::Goal { name, units: 1 }));
    match chance.below(3) {
        0 => steps.push((100, Step::MachinePod { name, grace: None })),
        1 => steps.push((100, Step::Move { name, fails: false })),
        _ => steps.extend([(100, Step::MachineGone(name)), (chance.below(3_000), vm(2))]),
    }
    // There is room for it at the beginning.
    let at = to_usize(chance.below((turns.len() as u64 + 1).min(20)));
    let turn = |(after, step)| Turn { after: Duration::from_millis(after), step };
    turns.splice(at..at, steps.into_iter().map(turn));
}

fn instead(step: Step, nodes: usize, chance: &mut Chance) -> Step {
    let node = |chance: &mut Chance| to_usize(chance.below(nodes as u64));
    if let Step::Vm { name, units, most, least, .. } = step
        && is_ours(name)
    {
        Step::Machine { name, units, most, least }
    } else if let Step::Vm { name, units, odd, most, least, container, .. } = step {
        Step::Vm { name, units, odd, most, least, is_others: false, container }
    } else if let Step::Delete { is_vm: true, name, grace } = step
        && is_ours(name)
    {
        let grace = Some(grace);
        if chance.happens(50) { Step::MachineGone(name) } else { Step::MachinePod { name, grace } }
    } else if let Step::End { is_vm: true, name } = step
        && is_ours(name)
    {
        Step::MachinePod { name, grace: None }
    } else if let Step::VmPast { name, node, units } = step {
        Step::VmPast { name: name & !1, node, units }
    } else if let Step::AgentRestarts(name) = step
        && is_ours(name)
    {
        Step::AgentKill(node(chance), 1_000)
    } else if let Step::AgentIsSilent(name, time) = step
        && is_ours(name)
    {
        Step::AgentStop(node(chance), time.min(15_000))
    } else if let Step::NoCeiling(name) | Step::AgentIsOld(name) = step
        && is_ours(name)
    {
        Step::AgentCut(node(chance))
    } else {
        step
    }
}

const fn is_ours(name: usize) -> bool {
    name % 2 == 1
}

/// A VM that has an object.
fn name(chance: &mut Chance) -> usize {
    to_usize(chance.below(NAMES as u64 / 2)) * 2 + 1
}
