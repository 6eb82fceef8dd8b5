//! A schedule of a cluster, carried out and judged, and one that fails, made smaller.

use super::Schedule;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use windlass_world::cluster::{Broken, ClusterWorld, Met};

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
    /// What it met.
    pub met: Met,
    /// A line per event, if it was to be told.
    pub story: Vec<String>,
}

/// Plays it. A panic of a core or of the world is an outcome like others, so that it has a seed.
pub fn play(schedule: &Schedule, told: bool) -> Outcome {
    let mut world = ClusterWorld::new(&schedule.setup);
    if told {
        world.tell_story();
    }
    let played = catch_unwind(AssertUnwindSafe(|| carry_out(schedule, &mut world)));
    let mut outcome = Outcome {
        wrong: world.broken().iter().map(Broken::to_string).collect(),
        first: world.broken().first().map(|broken| format!("{:?}", broken.law)),
        events: world.events(),
        time: Duration::from_millis(world.now().millis()),
        met: world.met().clone(),
        story: world.story().to_vec(),
    };
    if played.is_err() {
        outcome.first.get_or_insert_with(|| "panic".to_owned());
        outcome.wrong.push("panicked".to_owned());
    }
    outcome
}

fn carry_out(schedule: &Schedule, world: &mut ClusterWorld) {
    for turn in &schedule.turns {
        world.run(turn.after);
        if !world.broken().is_empty() {
            return;
        }
        world.step(turn.step);
    }
    world.end();
}

/// The smallest schedule found that fails as this one does, and how many were tried.
pub fn minimise(schedule: &Schedule) -> (Schedule, u64) {
    let Some(kind) = play(schedule, false).first else { return (schedule.clone(), 1) };
    let (mut best, mut tried) = (schedule.clone(), 1);
    let mut group = best.turns.len().div_ceil(2).max(1);
    loop {
        let (mut at, mut smaller) = (0, false);
        while at < best.turns.len() {
            let candidate = without(&best, at, group);
            tried += 1;
            if play(&candidate, false).first.as_ref() == Some(&kind) {
                (best, smaller) = (candidate, true);
            } else {
                at += group;
            }
        }
        if group == 1 && !smaller {
            return (best, tried);
        }
        group = if smaller { group } else { group.div_ceil(2) };
        group = group.min(best.turns.len().max(1));
    }
}

/// Without `count` turns from the one at `at` on; what follows happens when it did.
fn without(schedule: &Schedule, at: usize, count: usize) -> Schedule {
    let mut smaller = schedule.clone();
    let end = (at + count).min(smaller.turns.len());
    let time: Duration = smaller.turns.drain(at..end).map(|turn| turn.after).sum();
    if let Some(next) = smaller.turns.get_mut(at) {
        next.after = next.after.saturating_add(time);
    }
    smaller
}

// === impl Outcome ===

impl Outcome {
    /// Whether nothing went wrong.
    pub fn passed(&self) -> bool {
        self.wrong.is_empty()
    }
}
