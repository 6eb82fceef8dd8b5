//! A schedule, carried out and judged.

use crate::schedule::{Act, Schedule};
use std::time::Duration;
use windlass_protocol::{Bytes, ComputeUnit};
use windlass_world::script::{self, MOST_UNITS, UNIT, info, spec, units};
use windlass_world::{Faults, Setup, Step, World};

/// A kind world gets its goal within this: four compute units down, each a consent, an unplug and
/// the longest cool-down, after the longest rest of a line.
const KIND: Duration = Duration::from_secs(240);
/// Then nothing changes for so long.
const QUIET: Duration = Duration::from_secs(60);
/// Events for each VM in that time; an informant's samples are most of them.
const MOST_EVENTS: u64 = 1_500;
/// What may be arranged for each VM.
const MOST_ARRANGED: usize = 200;

/// How it came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What went wrong, oldest first; empty if nothing did.
    pub wrong: Vec<String>,
    /// The law that was broken first, or another word for what went wrong.
    pub first: Option<String>,
    /// How much happened.
    pub events: u64,
    /// How much virtual time went by.
    pub time: Duration,
    /// A line per event, if it was to be told.
    pub story: Vec<String>,
}

/// Plays it.
pub fn play(schedule: &Schedule, told: bool) -> Outcome {
    let mut world = build(schedule);
    if told {
        world.tell_story();
    }
    let began = world.now();
    let mut most_arranged = 0;
    for turn in &schedule.turns {
        world.run(turn.after);
        match &turn.act {
            Act::Step(Step::Use(vm, used)) if !world.fits(vm, *used) => {}
            Act::Step(step) => world.step(step.clone()),
            Act::Network(faults) => world.faults = *faults,
            Act::Appears(index) if world.node_of(&script::vm(*index)).is_some() => {}
            Act::Appears(index) => add(schedule, &mut world, *index),
        }
        most_arranged = most_arranged.max(world.arranged());
        if !world.violations().is_empty() {
            break;
        }
    }
    let mut outcome = Outcome::default();
    if most_arranged > schedule.vms * MOST_ARRANGED {
        outcome.fails("queue", format!("{most_arranged} events were arranged at once"));
    }
    if world.violations().is_empty() {
        end(schedule, &mut world, &mut outcome);
    }
    for violation in world.violations() {
        outcome.fails(&format!("{:?}", violation.law), violation.to_string());
    }
    outcome.events = world.events();
    outcome.time = world.now().since(began);
    outcome.story = world.story().to_vec();
    outcome
}

/// A kind world gets its goal, and then rests.
fn end(schedule: &Schedule, world: &mut World, outcome: &mut Outcome) {
    world.faults = Faults::default();
    script::be_kind(world);
    for node in 0..schedule.nodes {
        world.step(Step::Room(node, units(schedule.vms as u64 * MOST_UNITS)));
    }
    // Whatever people said of VMs is taken back.
    for index in 0..schedule.vms {
        world.step(Step::Told(info(index)));
    }
    // A guest that has no use for what it holds: else it may refuse to give it up for ever.
    let names: Vec<_> = world.names().cloned().collect();
    for name in &names {
        world.step(Step::Use(name.clone(), Bytes::ZERO));
    }
    if !world.run_until(KIND, at_goal) {
        for name in names.iter().filter(|name| !world.is_at_goal(name)) {
            let status = world.status(name);
            let what =
                format!("{name} has {}, uses {}: {status:?}", world.has(name), world.uses(name));
            outcome.fails("KindWorldGetsItsGoal", what);
        }
        return;
    }
    let before = world.events();
    world.run(QUIET);
    let each = (world.events() - before) / schedule.vms.max(1) as u64;
    if each > MOST_EVENTS {
        outcome.fails(
            "busy",
            format!("{each} events for each VM in a minute in which nothing changed"),
        );
    }
}

fn at_goal(world: &World) -> bool {
    world.names().all(|name| world.is_at_goal(name))
}

fn build(schedule: &Schedule) -> World {
    let unit = ComputeUnit::try_from(UNIT).expect("it has both axes");
    let mut world = World::new(Setup {
        nodes: schedule.nodes,
        room: units(schedule.room),
        unit,
        trust_guest_parking: schedule.trust,
        seed: schedule.seed,
    });
    for index in 0..schedule.vms {
        add(schedule, &mut world, index);
    }
    world
}

fn add(schedule: &Schedule, world: &mut World, index: usize) {
    world.add_on(index % schedule.nodes.max(1), info(index), spec(index));
}

// === impl Outcome ===

impl Outcome {
    /// Whether nothing went wrong.
    pub fn passed(&self) -> bool {
        self.wrong.is_empty()
    }

    fn fails(&mut self, kind: &str, what: String) {
        self.first.get_or_insert_with(|| kind.to_owned());
        self.wrong.push(what);
    }
}
