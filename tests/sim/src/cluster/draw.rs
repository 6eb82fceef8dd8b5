//! A schedule, drawn from a seed.

mod objects;

use super::{Schedule, Turn};
use std::time::Duration;
use windlass_world::Chance;
use windlass_world::cluster::network::Network;
use windlass_world::cluster::steps::{Container, NAMES};
use windlass_world::cluster::{Setup, Sharing, Spare, Step};

/// What follows the seed of a schedule is not what follows the seed of its world.
const APART: u64 = 0x5EED_C105;
/// Nor is what this adds what follows the rest: a seed that failed once keeps its schedule.
const FURTHER: u64 = 0x0DD5_C105;
/// Nor what this adds.
const OBJECTS: u64 = 0x0B1E_C75C;
/// Nor what this adds.
const DRAINS: u64 = 0xD8A1_C0BD;

/// The schedule of this seed.
pub fn draw(seed: u64) -> Schedule {
    let mut chance = Chance::new(seed ^ APART);
    let mut setup = setup(seed, &mut chance);
    let (nodes, plugins) = (setup.nodes.len(), setup.rates.len());
    // Where an agent names no last permit and no ceiling is recorded, it is believed up to the maximum.
    let has_old = chance.happens(40);
    let mut turns = Vec::new();
    let mut put = |after: u64, step: Step| {
        turns.push(Turn { after: Duration::from_millis(after), step });
    };
    let first = 2 + chance.below(4);
    for name in 0..first {
        put(if name == 0 { 3_000 } else { 10 }, vm(to_usize(name), has_old, &mut chance));
    }
    put(5_000 + chance.below(5_000), Step::Network(network(&mut chance)));
    let quiet = [400, 1_200, 3_000][to_usize(chance.below(3))];
    let lasts = 40_000 + chance.below(60_000);
    let mut time = 0;
    while time < lasts {
        let after = 1 + chance.below(2 * quiet);
        time += after;
        put(after, step((nodes, plugins), has_old, &mut chance));
    }
    let mut further = Chance::new(seed ^ FURTHER);
    let is_resized = further.happens(35);
    if is_resized {
        resize(&mut setup, &mut turns, has_old, &mut further);
    }
    let mut of_objects = Chance::new(seed ^ OBJECTS);
    setup.has_objects = !is_resized && of_objects.happens(50);
    if further.happens(30) {
        change(&setup, &mut turns, !is_resized && !setup.has_objects, &mut further);
    }
    if setup.has_objects {
        objects::put(nodes, &mut turns, &mut of_objects);
        let mut drains = Chance::new(seed ^ DRAINS);
        setup.empties_cordoned = drains.happens(40);
        if setup.empties_cordoned {
            objects::drain(nodes, &mut turns, &mut drains);
        }
    }
    Schedule { seed, setup, turns }
}

/// What changes under the plugins. An API server that goes back takes allocations back, which VMs may have: that is drawn where
/// no pods are resized.
fn change(setup: &Setup, turns: &mut Vec<Turn>, goes_back: bool, chance: &mut Chance) {
    let nodes = setup.nodes.len() as u64;
    let node = |chance: &mut Chance| to_usize(chance.below(nodes));
    let mut steps = Vec::new();
    if chance.happens(50) {
        for _ in 0..=chance.below(4) {
            steps.push(Step::NodeSize { node: node(chance), units: 3 + chance.below(9) });
        }
    }
    if chance.happens(40) {
        for _ in 0..=chance.below(2) {
            let (units, time) = (4 + chance.below(7), 500 + chance.below(30_000));
            steps.push(Step::NodeGone { node: node(chance), units, time });
        }
    }
    if chance.happens(40) {
        for _ in 0..=chance.below(3) {
            let like = node(chance);
            let sharing = setup.nodes.get(like).map_or(Sharing::Dedicated, |(_, sharing)| *sharing);
            let sharing = if chance.happens(40) { Sharing::Dedicated } else { sharing };
            steps.push(Step::NodePool { node: node(chance), sharing });
        }
    }
    if chance.happens(30) {
        steps.push(Step::LeaseGone);
    }
    for step in steps {
        put_in(turns, (0, 100), step, chance);
    }
    if goes_back && chance.happens(50) {
        put_in(turns, (5, 40), Step::Copy, chance);
        put_in(turns, (50, 100), Step::Back, chance);
    }
}

/// Puts something in, among turns in this range, in hundredths of all.
fn put_in(turns: &mut Vec<Turn>, (from, to): (usize, usize), step: Step, chance: &mut Chance) {
    let (from, to) = (turns.len() * from / 100, turns.len() * to / 100);
    let at = from + to_usize(chance.below((to - from) as u64));
    let after = Duration::from_millis(1 + chance.below(1_000));
    turns.insert(at, Turn { after, step });
}

/// Where pods of VMs are resized: on all nodes, or some. A VM starts with no more than its pod requests, and past the plugin no
/// pod follows another of its name.
fn resize(setup: &mut Setup, turns: &mut Vec<Turn>, has_old: bool, chance: &mut Chance) {
    let are_all = chance.happens(50);
    for (nth, (_, sharing)) in setup.nodes.iter_mut().enumerate() {
        if are_all || nth == 0 || chance.happens(40) {
            *sharing = Sharing::Resized;
        }
    }
    let mut past = NAMES;
    for turn in &mut *turns {
        let step = &mut turn.step;
        if let Step::Vm { units, odd, least, container, .. } = step {
            (*units, *odd) = ((*units).max(*least), *odd % 8 * 128);
            *container = Container {
                is_limited: chance.happens(30),
                is_fixed: chance.happens(5),
                beside: u64::from(chance.happens(15)),
            };
        } else if let Step::VmPast { name, .. } = step {
            *name = past;
            past += 1;
        } else if let Step::Other { node, units, .. } = *step {
            if !has_old && chance.happens(25) {
                *step = Step::VmPast { name: past, node, units: units.min(2) };
                past += 1;
            }
        } else if let Step::Goal { name, .. } = step
            && past > NAMES
            && chance.happens(25)
        {
            *name = past - 1;
        }
    }
    let nodes = setup.nodes.len() as u64;
    let is_goal = |at: &usize| matches!(turns[*at].step, Step::Goal { .. });
    let goals: Vec<usize> = (0..turns.len()).rev().filter(is_goal).collect();
    for at in goals {
        if chance.happens(30) {
            race(turns, at, (past, to_usize(chance.below(nodes))), chance);
            past += 1;
        }
    }
}

/// Another scheduler places a pod while a VM may be about to grow. The pod goes a while later.
fn race(turns: &mut Vec<Turn>, at: usize, (name, node): (usize, usize), chance: &mut Chance) {
    let later = (at + 2 + to_usize(chance.below(12))).min(turns.len());
    let (grace, units) = (chance.below(2_000), 1 + chance.below(4));
    let after = |chance: &mut Chance| Duration::from_millis(1 + chance.below(2_500));
    let step = Step::Delete { is_vm: false, name, grace };
    turns.insert(later, Turn { after: after(chance), step });
    turns.insert(at + 1, Turn { after: after(chance), step: Step::Other { name, node, units } });
}

fn setup(seed: u64, chance: &mut Chance) -> Setup {
    let many = 2 + chance.below(2);
    let mix = chance.below(4);
    let nodes = (0..many).map(|_| {
        let is_shared = match mix {
            0 | 1 => false,
            2 => chance.happens(50),
            _ => true,
        };
        let spare = match chance.below(3) {
            0 => Spare::All,
            units => Spare::Units(units - 1),
        };
        let shared = Sharing::Headroom(spare);
        (5 + chance.below(6), if is_shared { shared } else { Sharing::Dedicated })
    });
    let nodes = nodes.collect();
    let plugins = 2 + u64::from(chance.happens(15));
    let rates = (0..plugins).map(|_| 980 + chance.below(41)).collect();
    Setup { seed, nodes, rates, has_objects: false, empties_cordoned: false }
}

fn step((nodes, plugins): (usize, usize), has_old: bool, chance: &mut Chance) -> Step {
    let name = to_usize(chance.below(NAMES as u64));
    let node = to_usize(chance.below(nodes as u64));
    let plugin = to_usize(chance.below(plugins as u64));
    let is_vm = chance.happens(60);
    match chance.below(100) {
        0..=17 => vm(name, has_old, chance),
        18..=19 if !has_old => Step::VmPast { name, node, units: 1 + chance.below(2) },
        20..=25 => Step::Other { name, node, units: 1 + chance.below(4) },
        26..=33 => Step::Delete { is_vm, name, grace: chance.below(6_000) },
        34..=36 => Step::End { is_vm, name },
        37..=61 => Step::Goal { name, units: 1 + chance.below(6) },
        62..=64 => Step::AgentRestarts(name),
        65 if has_old => Step::AgentIsOld(name),
        65 => Step::NoCeiling(name),
        18..=19 | 66..=68 => Step::AgentIsSilent(name, chance.below(25_000)),
        69..=71 => Step::CutOff(plugin, [3_000, 12_000, 30_000][to_usize(chance.below(3))]),
        72..=74 => Step::Stop(plugin, [1_500, 4_000, 30_000][to_usize(chance.below(3))]),
        75..=78 => Step::Kill(plugin, chance.below(20_000)),
        79..=82 => Step::Leave(plugin),
        83..=86 => Step::CutPods(plugin),
        87 => Step::CutNodes(plugin),
        88..=89 => Step::Compact,
        90..=91 => Step::Down([1_000, 5_000, 25_000][to_usize(chance.below(3))]),
        _ => Step::Network(network(chance)),
    }
}

fn vm(name: usize, has_old: bool, chance: &mut Chance) -> Step {
    let odd = if chance.happens(25) { chance.below(128) } else { 0 };
    let (units, least) = (1 + chance.below(2), 1 + u64::from(chance.happens(15)));
    let is_others = !has_old && chance.happens(15);
    let (most, container) = (2 + chance.below(5), Container::default());
    Step::Vm { name, units, odd, most, least, is_others, container }
}

fn network(chance: &mut Chance) -> Network {
    let kind = chance.below(5);
    if kind == 0 {
        return Network { lag: 50, ..Network::default() };
    }
    let mut some = |most: u64| if chance.happens(60) { chance.below(most) } else { 0 };
    Network {
        lost: some(15),
        unanswered: some(20),
        refused: some(25),
        half_done: some(10),
        slow: some(15),
        late: 1 + if kind == 1 { 50_000 } else { 8_000 },
        agents_lost: some(15),
        agents_twice: some(25),
        agents_slow: some(25),
        agents_late: [1_900, 8_000][to_usize(kind % 2)],
        lag: some(4_000),
        gaps: some(30),
    }
}

fn to_usize(drawn: u64) -> usize {
    usize::try_from(drawn).unwrap_or(0)
}
