//! A failing schedule, made smaller.

use crate::play::play;
use crate::schedule::Schedule;

/// The smallest schedule found that fails as this one does, and how many were tried. Turns are
/// left out in ever smaller groups, as long as the same law is broken first; their time stays.
pub fn minimise(schedule: &Schedule) -> (Schedule, u64) {
    let Some(kind) = play(schedule, false).first else { return (schedule.clone(), 1) };
    let (mut best, mut tried) = (schedule.clone(), 1);
    let mut group = best.turns.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut smaller = false;
        while at < best.turns.len() {
            let candidate = without(&best, at, group);
            tried += 1;
            if play(&candidate, false).first.as_ref() == Some(&kind) {
                best = candidate;
                smaller = true;
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
    let time = smaller.turns.drain(at..end).map(|turn| turn.after).sum();
    if let Some(next) = smaller.turns.get_mut(at) {
        next.after = next.after.saturating_add(time);
    }
    smaller
}
