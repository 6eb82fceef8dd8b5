//! No two processes answer at the same moment, and epochs grow, whatever the network and the machines do.

use crate::stories::released;
use crate::world::{Fate, World};
use proptest::prelude::*;

/// Processes at a time.
const MANY: usize = 3;
/// True milliseconds of faults, and of the kind world after them.
const FAULTS: u64 = 120_000;
const KIND: u64 = 60_000;
/// Processes turn once in so many of them.
const STEP: u64 = 5;

/// What is drawn of a history: how bad its network is, and how often something happens to a process.
#[derive(Clone, Copy, Debug)]
struct History {
    seed: u64,
    /// Of a thousand requests or answers, so many are lost.
    lost: u64,
    /// The longest delay of a request or an answer.
    delay: u64,
    /// The mean milliseconds between two things that happen to processes.
    quiet: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_two_processes_answer_at_once_and_epochs_grow(history in history()) {
        let mut chance = Chance(history.seed);
        let mut world = released();
        world.step = STEP;
        for _ in 0..MANY {
            begin(&mut world, &mut chance);
        }
        let mut leaders = Leaders::default();
        for _ in 0..FAULTS / STEP {
            world.pass(|_| fate(&mut chance, history));
            if chance.below(history.quiet / STEP) == 0 {
                happen(&mut world, &mut chance);
            }
            leaders.look(&world)?;
        }
        for process in &mut world.processes {
            process.paused_until = 0;
        }
        world.start(1_000);
        for _ in 0..KIND / STEP {
            world.pass(|_| Fate::KIND);
            leaders.look(&world)?;
        }
        prop_assert!(!world.answer().is_empty(), "in a kind world somebody leads");
    }
}

fn history() -> impl Strategy<Value = History> {
    let delays = prop_oneof![Just(20_u64), Just(1_500), Just(20_000)];
    let quiet = prop_oneof![Just(2_000_u64), Just(10_000), Just(40_000)];
    (any::<u64>(), 0_u64..300, delays, quiet).prop_map(|(seed, lost, delay, quiet)| History {
        seed,
        lost,
        delay,
        quiet,
    })
}

/// Who has led, and in which epoch.
#[derive(Default)]
struct Leaders {
    last: Option<(usize, u32)>,
}

impl Leaders {
    fn look(&mut self, world: &World) -> Result<(), TestCaseError> {
        let answer = world.answer();
        prop_assert!(answer.len() <= 1, "at {}: {answer:?} answer", world.now);
        if world.record.is_none() {
            // A lease that is deleted takes its epochs with it, as far as no process has seen them.
            self.last = None;
            return Ok(());
        }
        let Some(&(nth, epoch)) = answer.first() else { return Ok(()) };
        if let Some((last, before)) = self.last.replace((nth, epoch)) {
            let grows = if last == nth { epoch == before } else { epoch > before };
            prop_assert!(grows, "{last} led in epoch {before}, and {nth} in {epoch}");
        }
        Ok(())
    }
}

/// A process starts with a clock that is up to four hundredths fast or slow.
fn begin(world: &mut World, chance: &mut Chance) {
    world.start(960 + chance.below(81));
}

fn happen(world: &mut World, chance: &mut Chance) {
    let alive: Vec<usize> =
        (0..world.processes.len()).filter(|nth| !world.processes[*nth].has_ended).collect();
    let drawn = usize::try_from(chance.below(MANY as u64)).unwrap_or_default();
    let Some(nth) = alive.get(drawn).copied() else {
        return begin(world, chance);
    };
    match chance.below(8) {
        0 => world.kill(nth),
        1 => world.leave(nth),
        // An operator deletes it once. Whether an object that is not there was there in between, nothing tells.
        2 if world.now > FAULTS / 3 && !world.was_deleted => world.delete(),
        2..=5 => world.processes[nth].paused_until = world.now + chance.below(30_000),
        _ => world.processes[nth].paused_until = world.now + chance.below(3_000),
    }
}

fn fate(chance: &mut Chance, history: History) -> Fate {
    let mut way = || {
        let delay = if chance.below(4) == 0 { history.delay } else { 20 };
        (chance.below(1_000) >= history.lost).then(|| 1 + chance.below(delay))
    };
    let (there, back) = (way(), way());
    let again = (chance.below(10) == 0).then(|| chance.below(10_000));
    Fate { there, back, again }
}

/// A generator of numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, many: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % many
    }
}
