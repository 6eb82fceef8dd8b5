//! A schedule of a cluster, carried out and judged, and one that fails, made smaller.

use super::Schedule;
use crate::minimise::fewest;
use crate::outcome;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use windlass_world::cluster::{Broken, ClusterWorld, Met};

/// How it came out.
pub type Outcome = outcome::Outcome<Met>;

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
    if let Err(panic) = played {
        outcome.panics(panic.as_ref());
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
    let with = |turns| Schedule { turns, ..schedule.clone() };
    let first = |turns| play(&with(turns), false).first;
    let (turns, tried) = fewest(&schedule.turns, |turn| &mut turn.after, first);
    (with(turns), tried)
}
