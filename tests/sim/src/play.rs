//! A schedule, carried out and judged.

use crate::outcome;
use crate::schedule::{Act, Schedule};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use windlass_agent_core::Order;
use windlass_protocol::timing::REQUEST_IS_LATE;
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Resources, ScaleDown, VmInfo, VmName};
use windlass_world::script::{self, MOST_UNITS, UNIT, info, spec, units};
use windlass_world::{Coverage, Faults, GuestSpec, Setup, Step, World};

/// The compute unit where VMs have parts of a vCPU, and in how many of them the largest moves.
const PART: Resources = Resources::new(MilliCpu::from_milli(250), UNIT.mem);
const MOST_PARTS: u64 = 8;
/// A VM that is let go has back what was found within this.
const LET_GO: Duration = Duration::from_secs(60);
/// An agent that names no last permit says a smaller size twice.
const TOLD_TWICE: Duration = REQUEST_IS_LATE.saturating_mul(3);
/// Before anybody is judged, faults that end by themselves have ended, and figures of before are old.
const FIRST: Duration = Duration::from_secs(30);
/// A session that nothing comes of is given up within this, and another is open.
const SESSION: Duration = Duration::from_secs(60);
/// With a session, a VM has what its goal has more within this: a permit, a plug, a look, a word.
const GROWTH: Duration = Duration::from_secs(15);
/// A VM gives a compute unit back within this: a consent, an unplug and the longest cool-down.
const UNIT_DOWN: Duration = Duration::from_secs(60);
/// Then the last word about a size may be on its way.
const SETTLE: Duration = Duration::from_secs(2);
/// Where there is too little, less than a unit that somebody gave back may still be shared out.
const SHARE_OUT: Duration = Duration::from_secs(10);
/// The average of a load that stays has come to it by now: ten of the longest window that decides.
const AVERAGED: Duration = Duration::from_secs(150);
/// Then nothing changes for so long.
const QUIET: Duration = Duration::from_secs(20);
/// Events for each VM in that time: an informant's samples, and messages at their periods.
const MOST_EVENTS: u64 = 250;
/// What may be arranged for each VM.
const MOST_ARRANGED: usize = 60;
/// Agents that an informant may keep, registered or registering.
const MOST_AGENTS: usize = 16;

/// How it came out, and what happened to whom, in which state.
pub type Outcome = outcome::Outcome<Coverage>;

/// Plays it. A panic of a core or of the world is an outcome like others, so that it has a seed.
pub fn play(schedule: &Schedule, told: bool) -> Outcome {
    let mut world = build(schedule);
    if told {
        world.tell_story();
    }
    let began = world.now();
    let mut outcome = Outcome::default();
    let played = catch_unwind(AssertUnwindSafe(|| carry_out(schedule, &mut world, &mut outcome)));
    if let Err(panic) = played {
        outcome.panics(panic.as_ref());
    }
    outcome.events = world.events();
    outcome.time = world.now().since(began);
    outcome.met = world.coverage().clone();
    outcome.story = world.story().to_vec();
    outcome
}

fn carry_out(schedule: &Schedule, world: &mut World, outcome: &mut Outcome) {
    let mut most_agents = 0;
    for turn in &schedule.turns {
        world.run(turn.after);
        match &turn.act {
            Act::Step(Step::Use(vm, used)) if !world.fits(vm, *used) => {}
            Act::Step(Step::Told(info)) => world.step(Step::Told(as_it_is(schedule, info.clone()))),
            Act::Step(step) => world.step(step.clone()),
            Act::Network(faults) => world.faults = *faults,
            Act::Appears(index) if world.node_of(&script::vm(*index)).is_some() => {}
            Act::Appears(index) => add(schedule, world, *index),
        }
        most_agents = most_agents.max(world.most_agents());
        if !world.violations().is_empty() {
            break;
        }
    }
    let most_arranged = world.most_arranged();
    if most_arranged > schedule.vms * MOST_ARRANGED {
        outcome.fails("queue", format!("{most_arranged} events were arranged at once"));
    }
    if most_agents > MOST_AGENTS {
        outcome.fails("queue", format!("an informant keeps {most_agents} agents"));
    }
    if world.violations().is_empty() {
        end(schedule, world, outcome);
    }
    for violation in world.violations() {
        outcome.fails(&format!("{:?}", violation.law), violation.to_string());
    }
}

/// A kind world gets its goal, and then rests; and books that are lost are rebuilt.
fn end(schedule: &Schedule, world: &mut World, outcome: &mut Outcome) {
    world.faults = Faults::default();
    script::be_kind(world);
    // Whatever people said of VMs is taken back.
    for index in 0..schedule.vms {
        world.step(Step::Told(as_it_is(schedule, info(index))));
    }
    let names: Vec<_> = world.names().cloned().collect();
    let scarce = schedule.seed % 3 == 1;
    for node in 0..schedule.nodes {
        let here = names.iter().filter(|name| world.node_of(name) == Some(node)).count() as u64;
        // All that they could want, or little more than they must have.
        let room = if scarce { here + schedule.seed % 4 } else { here * MOST_UNITS };
        world.step(Step::Room(node, units(room)));
    }
    // A guest that has no use for what it holds: else it may refuse to give it up for ever.
    for name in &names {
        world.step(Step::Use(name.clone(), Bytes::ZERO));
    }
    world.run(FIRST);
    // Who has a session already grows at once, the others once they have one.
    let at_once = |vm: &&VmName| world.has_session(vm) && !world.is_about_to_move(vm);
    let heard: Vec<_> = names.iter().filter(at_once).cloned().collect();
    if !scarce && !world.run_until(GROWTH, |world| heard.iter().all(|vm| world.has_grown(vm))) {
        return short(world, &heard, World::has_grown, outcome);
    }
    world.run_until(SESSION, |world| names.iter().all(|vm| world.has_session(vm)));
    if !scarce && !world.run_until(GROWTH, |world| names.iter().all(|vm| world.has_grown(vm))) {
        return short(world, &names, World::has_grown, outcome);
    }
    if !world.run_until(shrinks_within(schedule, world), settled(scarce)) {
        return short(world, &names, is_there(scarce), outcome);
    }
    if !world.books_have_who_is_there() {
        outcome.fails("books", "the books have VMs that are not there, or lack some".to_owned());
    }
    rest(schedule, world, outcome, scarce);
    if schedule.seed % 4 == 3 && !scarce && outcome.passed() {
        rebuild(schedule, world, outcome);
    }
    if schedule.seed % 5 == 2 && !scarce && outcome.passed() {
        let_go(world, outcome);
    }
}

/// How long a kind world may take to give back what nothing calls for.
fn shrinks_within(schedule: &Schedule, world: &World) -> Duration {
    let most = if schedule.parts { MOST_PARTS } else { MOST_UNITS };
    let units = u32::try_from(most - 1).unwrap_or(u32::MAX);
    UNIT_DOWN.saturating_mul(units).saturating_add(world.longest_hold())
}

/// A VM keeps what it does not need for as long as the schedule says, and one that can have parts of a vCPU has
/// bounds with such parts: a quarter to two.
fn as_it_is(schedule: &Schedule, info: VmInfo) -> VmInfo {
    let scale_down = if schedule.rests { ScaleDown::default() } else { ScaleDown::AT_ONCE };
    let mut info = VmInfo { scale_down, ..info };
    let mut limits = schedule.limits.iter().enumerate();
    let limited = limits.any(|(index, limited)| *limited && script::vm(index) == info.name);
    if schedule.parts && limited {
        let bounds = &mut info.bounds;
        bounds.min.cpu = MilliCpu::from_milli(bounds.min.cpu.milli() / 4);
        bounds.max.cpu = MilliCpu::from_milli(bounds.max.cpu.milli() / 2);
    }
    info
}

/// Nothing changes that need not.
fn rest(schedule: &Schedule, world: &mut World, outcome: &mut Outcome, scarce: bool) {
    let settled = settled(scarce);
    for _ in 0..schedule.vms {
        world.run(if scarce { SHARE_OUT } else { SETTLE });
        if !world.keeps_what_was_given_back() {
            break;
        }
        // It is free then, for a VM that waits.
        world.run_until(TOLD_TWICE, |world| !world.keeps_what_was_given_back());
    }
    let (mut events, mut moves) = (world.events(), world.moves());
    let mut stays = watched(world, settled);
    let excused = |vm| is_there(scarce)(world, vm) || world.average_calls_for_less(vm);
    if !stays && world.moves() == moves && world.names().all(excused) {
        // The averages still held what the load was before.
        world.run(AVERAGED);
        world.run_until(world.longest_hold().saturating_add(UNIT_DOWN), settled);
        (events, moves) = (world.events(), world.moves());
        stays = watched(world, settled);
    }
    if !stays {
        let names: Vec<_> = world.names().cloned().collect();
        outcome.fails("unsettled", "nothing changed, and it is there no more".to_owned());
        return short(world, &names, is_there(scarce), outcome);
    }
    let each = (world.events() - events) / schedule.vms.max(1) as u64;
    if each > MOST_EVENTS {
        let what = format!("{each} events for each VM in {QUIET:?} in which nothing changed");
        outcome.fails("busy", what);
    }
    if world.moves() > moves {
        let what = format!("{} moves in {QUIET:?} in which nothing changed", world.moves() - moves);
        outcome.fails("busy", what);
    }
}

/// Whether all that is settled stays so.
fn watched(world: &mut World, settled: fn(&World) -> bool) -> bool {
    (0..QUIET.as_secs()).all(|_| {
        world.run(Duration::from_secs(1));
        // An agent that finds a version with parts of a vCPU gives some back.
        settled(world) || world.keeps_what_was_given_back()
    })
}

/// Books that are rebuilt equal those that were lost.
fn rebuild(schedule: &Schedule, world: &mut World, outcome: &mut Outcome) {
    let books = |world: &World| -> Vec<Vec<_>> {
        let of = |node| world.books_of(node).vms.into_iter().map(|vm| (vm.name, vm.reserved));
        (0..schedule.nodes).map(|node| of(node).collect()).collect()
    };
    let (before, in_parts) = (books(world), world.speaks_in_parts());
    for node in 0..schedule.nodes {
        world.step(Step::HostRestarts(node));
    }
    world.run(FIRST);
    world.run_until(TOLD_TWICE, |world| !world.keeps_what_was_given_back());
    let after = books(world);
    // An agent that begins anew may find a later version, in which it can say parts of a vCPU.
    let said = |(name, size): &(VmName, Resources)| {
        let cpu = size.cpu.round_up(MilliCpu::from_cores(1));
        (name.clone(), Resources { cpu, ..*size })
    };
    let said = |books: &[Vec<_>]| -> Vec<Vec<_>> {
        books.iter().map(|node| node.iter().map(said).collect()).collect()
    };
    let same = if in_parts && world.speaks_in_parts() {
        before == after
    } else {
        said(&before) == said(&after)
    };
    if !same {
        outcome.fails("RebuildEqualsLive", format!("before {before:?}, rebuilt {after:?}"));
    }
}

/// VMs that are let go have nothing of ours left.
fn let_go(world: &mut World, outcome: &mut Outcome) {
    let names: Vec<_> = world.names().cloned().collect();
    for name in &names {
        world.step(Step::Ordered(name.clone(), Order::Release(None)));
    }
    if world.run_until(LET_GO, |world| names.iter().all(|name| world.is_let_go(name))) {
        return;
    }
    for name in names.iter().filter(|name| !world.is_let_go(name)) {
        let limit = world.limit(name);
        let status = world.status(name);
        outcome.fails("LetGo", format!("{name} is limited to {limit:?}: {status:?}"));
    }
}

/// Tells the VMs that are not where they should be by now; all, if it is no single one.
fn short(
    world: &World,
    names: &[VmName],
    is_there: fn(&World, &VmName) -> bool,
    outcome: &mut Outcome,
) {
    let all_there = names.iter().all(|name| is_there(world, name));
    for name in names.iter().filter(|name| all_there || !is_there(world, name)) {
        let status = world.status(name);
        let books = world.node_of(name).map(|node| world.books_of(node));
        let (has, uses) = (world.has(name), world.uses(name));
        let what = format!("{name} has {has}, uses {uses}: {status:?}, books: {books:?}");
        outcome.fails("KindWorldGetsItsGoal", what);
    }
}

/// What it is to come to: where there is too little, a fair share of it.
fn settled(scarce: bool) -> fn(&World) -> bool {
    if scarce { World::is_shared_out } else { at_goal }
}

/// The same of one VM.
fn is_there(scarce: bool) -> fn(&World, &VmName) -> bool {
    if scarce { World::has_its_share } else { World::is_at_goal }
}

fn at_goal(world: &World) -> bool {
    world.names().all(|name| world.is_at_goal(name))
}

fn build(schedule: &Schedule) -> World {
    let unit = if schedule.parts { PART } else { UNIT };
    let unit = ComputeUnit::try_from(unit).expect("it has both axes");
    let mut world = World::new(Setup {
        nodes: schedule.nodes,
        room: units(schedule.room),
        unit,
        trust_guest_parking: schedule.trust,
        listed: schedule.listed,
        seed: schedule.seed,
    });
    for index in 0..schedule.vms {
        add(schedule, &mut world, index);
    }
    world
}

fn add(schedule: &Schedule, world: &mut World, index: usize) {
    let speaks = schedule.speaks.get(index).copied().unwrap_or_default();
    let info = as_it_is(schedule, info(index));
    let limits = schedule.limits.get(index).copied().unwrap_or_default();
    let spec = GuestSpec { limits, ..spec(index) };
    world.add_speaking(index % schedule.nodes.max(1), info, spec, speaks);
}
