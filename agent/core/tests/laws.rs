//! The laws that a scaler must keep, in a world that loses, delays, repeats and restarts.
//!
//! Each property draws a history, lets the world carry it out, and asks the world's truth. The
//! last one is liveness: whatever happened before, a kind world gets its goal.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use windlass_protocol::{Bytes, ComputeUnit, Resources, Waiting};
use windlass_world::script::{self, Move, units, vm};
use windlass_world::world::{Muted, Part};
use windlass_world::{Law, Setup, Step, World};

const VMS: usize = 2;
/// Less than both VMs want at most, so they compete.
const ROOM: u64 = 6;
/// A kind world gets its goal within this: four compute units down, each a consent, an unplug
/// and the longest cool-down, after the longest rest of a line.
const KIND: Duration = Duration::from_secs(150);

fn muted() -> impl Strategy<Value = Option<Muted>> {
    prop_oneof![
        Just(None),
        Just(Some(Muted::Silent)),
        Just(Some(Muted::NoLoad)),
        Just(Some(Muted::NoMemory)),
        Just(Some(Muted::NotANumber)),
    ]
}

/// What may happen without a restart of a guest: with parking trusted, a reboot takes what was
/// promised to others, which is the guest's doing and not the scaler's.
fn move_of() -> impl Strategy<Value = Move> {
    let vm = || 0..VMS;
    prop_oneof![
        6 => (0_u64..8_000).prop_map(Move::Wait),
        // So that something else happens while a message is on its way.
        3 => (0_u64..600).prop_map(Move::Wait),
        3 => (vm(), 0_u64..60).prop_map(|(vm, load)| Move::Load(vm, load)),
        3 => (vm(), 0_u64..700).prop_map(|(vm, mib)| Move::Use(vm, mib)),
        1 => vm().prop_map(Move::AgentRestarts),
        1 => Just(Move::HostRestarts),
        1 => vm().prop_map(Move::InformantDies),
        2 => vm().prop_map(Move::InformantStarts),
        1 => (vm(), any::<bool>()).prop_map(|(vm, deaf)| Move::Deaf(vm, deaf)),
        1 => (vm(), any::<bool>()).prop_map(|(vm, stuck)| Move::Stuck(vm, stuck)),
        1 => (vm(), muted()).prop_map(|(vm, muted)| Move::Mute(vm, muted)),
        2 => (0_u64..40, 0_u64..30, 0_u64..1_500).prop_map(|(a, b, c)| Move::Network(a, b, c)),
        1 => (vm(), 1_u64..5).prop_map(|(vm, most)| Move::Maximum(vm, most)),
        1 => any::<bool>().prop_map(Move::Freeze),
    ]
}

fn history() -> impl Strategy<Value = Vec<Move>> {
    prop_oneof![3 => vec(move_of(), 1..40), 1 => flapping()]
}

/// Load that comes and goes while every message takes its time: what is said is old when it
/// arrives.
fn flapping() -> impl Strategy<Value = Vec<Move>> {
    let turn = (0..VMS, prop_oneof![Just(0), 20_u64..60], 50_u64..2_500);
    (500_u64..1_500, vec(turn, 4..24)).prop_map(|(delay, turns)| {
        let turns =
            turns.into_iter().flat_map(|(vm, load, wait)| [Move::Load(vm, load), Move::Wait(wait)]);
        [Move::Network(0, 0, delay)].into_iter().chain(turns).collect()
    })
}

fn live(moves: &[Move], trust: bool, seed: u64) -> World {
    let mut world = script::world(VMS, ROOM, trust, seed);
    for &step in moves {
        script::play(&mut world, step);
        world.run(Duration::from_millis(50));
    }
    world.run(Duration::from_secs(5));
    world
}

fn none_of(world: &World, law: Law) -> Result<(), TestCaseError> {
    let broken = world.violations_of(law);
    prop_assert!(broken.is_empty(), "{}", broken[0]);
    Ok(())
}

proptest! {
    #[test]
    fn permit_before_growth(moves in history(), trust: bool, seed: u64) {
        none_of(&live(&moves, trust, seed), Law::PermitBeforeGrowth)?;
    }

    #[test]
    fn consent_before_shrinkage(moves in history(), trust: bool, seed: u64) {
        none_of(&live(&moves, trust, seed), Law::ConsentBeforeShrinkage)?;
    }

    #[test]
    fn a_consent_ends_with_its_session(away in 0_u64..6_000, wait in 0_u64..9_000, seed: u64) {
        let mut world = script::world(1, ROOM, true, seed);
        script::play(&mut world, Move::Load(0, 30));
        world.run(Duration::from_secs(20));
        // The hypervisor falls silent while the guest is asked; then its informant starts anew.
        script::play(&mut world, Move::Network(0, 0, 400));
        script::play(&mut world, Move::Load(0, 0));
        let status = |world: &World| world.status(&vm(0)).unwrap();
        let is_asked = |world: &World| status(world).waiting.contains(&Waiting::Consent);
        let is_seen_asked = (0..5_000).any(|_| {
            world.run(Duration::from_millis(20));
            is_asked(&world)
        });
        // An answer may come sooner than anybody looks.
        prop_assume!(is_seen_asked);
        script::play(&mut world, Move::Deaf(0, true));
        let agrees = |world: &World| status(world).consent.is_some();
        prop_assert!(world.run_until(KIND, agrees), "{:?}", status(&world));
        script::play(&mut world, Move::Wait(away));
        script::play(&mut world, Move::InformantDies(0));
        script::play(&mut world, Move::InformantStarts(0));
        script::play(&mut world, Move::Wait(wait));
        script::play(&mut world, Move::Deaf(0, false));
        world.run(Duration::from_secs(15));
        none_of(&world, Law::ConsentBeforeShrinkage)?;
    }

    #[test]
    fn the_world_not_the_wish(moves in history(), trust: bool, seed: u64) {
        none_of(&live(&moves, trust, seed), Law::TheWorldNotTheWish)?;
    }

    #[test]
    fn plans_are_pure_and_do_not_run_away(moves in history(), trust: bool, seed: u64) {
        let world = live(&moves, trust, seed);
        none_of(&world, Law::PlansArePure)?;
        prop_assert!(world.arranged() < 2_000, "{} things arranged", world.arranged());
    }

    #[test]
    fn a_kind_world_gets_its_goal(moves in history(), trust: bool, seed: u64) {
        let mut world = live(&moves, trust, seed);
        script::be_kind(&mut world);
        // A guest that has no use for what it holds: else it may refuse to give it up for ever.
        (0..VMS).for_each(|index| script::play(&mut world, Move::Use(index, 0)));
        script::play(&mut world, Move::Room(2 * script::MOST_UNITS));
        let satisfied = world.run_until(KIND, at_goal);
        prop_assert!(satisfied, "{}", standings(&world));
    }

    #[test]
    fn missing_is_not_zero(
        before in history(),
        muted in muted().prop_filter("something is missing", Option::is_some),
        idle in 0_u64..10_000,
        trust: bool,
        seed: u64,
    ) {
        let mut world = live(&before, trust, seed);
        script::be_kind(&mut world);
        script::play(&mut world, Move::Room(2 * script::MOST_UNITS));
        for index in 0..VMS {
            script::play(&mut world, Move::Maximum(index, script::MOST_UNITS));
            script::play(&mut world, Move::Load(index, 36));
        }
        world.run(Duration::from_secs(60));
        let had: Vec<_> = (0..VMS).map(|index| uses(&world, index)).collect();
        // The last figures may still tell of the load, or already of its end; they get old
        // while a person holds everything where it is.
        script::play(&mut world, Move::Freeze(true));
        for index in 0..VMS {
            script::play(&mut world, Move::Load(index, 0));
        }
        world.run(Duration::from_millis(idle));
        for index in 0..VMS {
            script::play(&mut world, Move::Mute(index, muted));
        }
        world.run(Duration::from_secs(20));
        script::play(&mut world, Move::Freeze(false));
        world.run(Duration::from_secs(60));
        for (index, had) in had.into_iter().enumerate() {
            let has = uses(&world, index);
            prop_assert!(has.covers(had), "{} shrank from {had} to {has}", vm(index));
        }
    }
}

#[test]
fn fail_static_without_an_informant_nothing_is_taken_and_other_vms_grow() {
    let mut world = grown();
    world.step(Step::InformantDies(vm(0)));
    world.step(Step::Load(vm(0), 0.0));
    world.step(Step::Load(vm(1), 2.7));
    assert!(world.run_until(KIND, |world| uses(world, 1) == units(3)), "the other VM grows");
    world.run(Duration::from_secs(60));
    assert_eq!(uses(&world, 0), units(3), "nothing is taken");
    world.step(Step::InformantStarts(vm(0)));
    assert!(world.run_until(KIND, |world| uses(world, 0) == units(1)), "and then it is");
    assert_eq!(world.violations(), &[]);
}

#[test]
fn fail_static_without_a_hypervisor_nothing_moves_and_the_books_keep_it() {
    let mut world = grown();
    world.step(Step::Deaf(vm(0), true));
    world.step(Step::Load(vm(0), 0.0));
    world.run(Duration::from_secs(60));
    assert_eq!(world.uses(&vm(0)).mem, units(3).mem);
    assert!(booked(&world, 0).mem >= units(3).mem);
    world.step(Step::Deaf(vm(0), false));
    assert!(world.run_until(KIND, |world| uses(world, 0) == units(1)));
    assert_eq!(world.violations(), &[]);
}

#[test]
fn fail_static_without_the_books_nothing_grows_and_shrinking_goes_on() {
    // The books are in a process of their own, which stops: no request is answered.
    let mut world = grown_in(with_books_apart());
    world.step(Step::Pauses(Part::Host(0), KIND));
    world.step(Step::Load(vm(1), 2.7));
    world.step(Step::Load(vm(0), 0.0));
    world.run(KIND / 2);
    assert_eq!(uses(&world, 0), units(1), "it shrinks");
    let waiting = world.status(&vm(1)).unwrap().waiting;
    assert!(waiting.contains(&Waiting::Plugin), "{waiting:?}");
    assert_eq!(uses(&world, 1), units(1), "it does not grow");
    assert!(world.run_until(KIND, |world| uses(world, 1) == units(3)), "and then it does");
    assert_eq!(world.violations(), &[]);
}

#[test]
fn without_room_nothing_grows_and_shrinking_goes_on() {
    let mut world = grown();
    world.step(Step::Room(0, Resources::ZERO));
    world.step(Step::Load(vm(1), 3.0));
    world.step(Step::Load(vm(0), 0.0));
    assert!(world.run_until(KIND, |world| uses(world, 0) == units(1)), "it shrinks");
    assert_eq!(uses(&world, 1), units(1), "it does not grow");
    world.step(Step::Room(0, units(ROOM)));
    assert!(world.run_until(KIND, |world| uses(world, 1) == units(3)), "and then it does");
}

#[test]
fn newest_session_counts_and_an_older_agent_takes_nothing() {
    let mut world = grown();
    for _ in 0..3 {
        world.step(Step::AgentRestarts(vm(0)));
        world.run(Duration::from_secs(20));
        assert_eq!(uses(&world, 0), units(3));
    }
    assert_eq!(world.violations(), &[]);
}

#[test]
fn a_guest_that_restarts_is_given_back_what_it_had() {
    let mut world = grown();
    world.step(Step::Reboots(vm(0)));
    assert_eq!(world.uses(&vm(0)).mem, Bytes::from_mib(256), "its memory is gone at first");
    world.step(Step::Load(vm(0), 2.7));
    world.run(Duration::from_secs(3));
    assert!(booked(&world, 0).covers(units(3)), "nothing is given back meanwhile");
    assert!(world.run_until(KIND, |world| uses(world, 0) == units(3) && at_goal(world)));
    assert_eq!(world.violations(), &[]);
}

#[test]
fn a_vm_does_not_shrink_below_what_is_in_use() {
    let mut world = grown();
    world.step(Step::Use(vm(0), Bytes::from_mib(420)));
    world.run(Duration::from_secs(1));
    script::play(&mut world, Move::Maximum(0, 2));
    world.run(Duration::from_secs(120));
    assert_eq!(world.ooms(&vm(0)), 0);
    let has = world.uses(&vm(0));
    assert_eq!((has.mem, has.cpu), (units(3).mem, units(2).cpu), "the vcpu goes, memory stays");
    world.step(Step::Use(vm(0), Bytes::from_mib(100)));
    assert!(world.run_until(KIND, |world| uses(world, 0) == units(2)), "until it fits");
}

/// Two VMs, the first with three compute units and a load that needs them.
fn grown() -> World {
    grown_in(script::world(VMS, ROOM, true, 7))
}

fn grown_in(mut world: World) -> World {
    world.run(Duration::from_secs(10));
    world.step(Step::Load(vm(0), 2.7));
    assert!(
        world.run_until(KIND, |world| uses(world, 0) == units(3)),
        "{:?}",
        world.status(&vm(0))
    );
    world.run(Duration::from_secs(10));
    world
}

/// The same VMs on a node whose books are in another process than the agents.
fn with_books_apart() -> World {
    let unit = ComputeUnit::try_from(units(1)).unwrap();
    let setup = Setup {
        nodes: 1,
        room: units(ROOM),
        unit,
        trust_guest_parking: true,
        listed: true,
        seed: 7,
    };
    let mut world = World::new(setup);
    (0..VMS).for_each(|index| world.add(script::info(index), script::spec(index)));
    world
}

fn uses(world: &World, index: usize) -> Resources {
    world.uses(&vm(index))
}

fn booked(world: &World, index: usize) -> Resources {
    let books = world.books();
    books.vms.iter().find(|booked| booked.name == vm(index)).unwrap().reserved
}

/// Goal, use, books and truth of each VM.
fn standings(world: &World) -> String {
    let of = |index| {
        let status = world.status(&vm(index));
        let goal = status.as_ref().and_then(|status| status.goal);
        let (uses, has) = (uses(world, index), world.has(&vm(index)));
        let booked = booked(world, index);
        format!("goal {goal:?}, uses {uses:?}, booked {booked:?}, has {has:?}: {status:?}")
    };
    (0..VMS).map(of).collect::<Vec<_>>().join("\n")
}

/// Every VM is at its goal, and where vCPUs can be taken out, none stays that is not used.
fn at_goal(world: &World) -> bool {
    (0..VMS).all(|index| {
        let plugged = world.status(&vm(index)).and_then(|status| Some(status.seen?.plugged));
        let none_idle = !script::spec(index).removal || plugged == Some(uses(world, index).cpu);
        none_idle && world.is_at_goal(&vm(index))
    })
}
