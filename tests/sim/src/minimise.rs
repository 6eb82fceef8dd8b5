//! A failing schedule, made smaller.

use crate::play::play;
use crate::schedule::Schedule;
use std::time::Duration;

/// The smallest schedule found that fails as this one does, and how many were tried.
pub fn minimise(schedule: &Schedule) -> (Schedule, u64) {
    let with = |turns| Schedule { turns, ..schedule.clone() };
    let first = |turns| play(&with(turns), false).first;
    let (turns, tried) = fewest(&schedule.turns, |turn| &mut turn.after, first);
    (with(turns), tried)
}

/// The fewest turns found that fail as all of them do, and how many were tried; `after` is how long after the one before
/// a turn happens, `first` what goes wrong first. Turns are left out in ever smaller groups, as long as the same law is broken
/// first; their time stays.
pub(crate) fn fewest<T: Clone>(
    turns: &[T],
    after: fn(&mut T) -> &mut Duration,
    first: impl Fn(Vec<T>) -> Option<String>,
) -> (Vec<T>, u64) {
    let (mut best, mut tried) = (turns.to_vec(), 1);
    let Some(kind) = first(best.clone()) else { return (best, tried) };
    let mut group = best.len().div_ceil(2).max(1);
    loop {
        let (mut at, mut smaller) = (0, false);
        while at < best.len() {
            let candidate = without(&best, at, group, after);
            tried += 1;
            if first(candidate.clone()).as_ref() == Some(&kind) {
                (best, smaller) = (candidate, true);
            } else {
                at += group;
            }
        }
        if group == 1 && !smaller {
            return (best, tried);
        }
        group = if smaller { group } else { group.div_ceil(2) };
        group = group.min(best.len().max(1));
    }
}

/// Without `count` turns from the one at `at` on; what follows happens when it did.
fn without<T: Clone>(
    turns: &[T],
    at: usize,
    count: usize,
    after: fn(&mut T) -> &mut Duration,
) -> Vec<T> {
    let mut smaller = turns.to_vec();
    let end = (at + count).min(smaller.len());
    let time: Duration = smaller.drain(at..end).map(|mut turn| *after(&mut turn)).sum();
    if let Some(next) = smaller.get_mut(at) {
        let after = after(next);
        *after = after.saturating_add(time);
    }
    smaller
}
