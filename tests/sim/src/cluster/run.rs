//! Plays the clusters that were asked for, and prints how they came out.

use super::draw::draw;
use super::play::{Outcome, minimise, play};
use crate::seeds::{Seeds, Sum, failures};
use std::fmt::Write;
use std::time::Duration;
use windlass_world::cluster::Met;

/// Characters that are said of each failure; `--seed` says all.
const MOST_SAID: usize = 300;

/// What many schedules came to.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    failed: Vec<(u64, String)>,
    events: u64,
    time: Duration,
    met: Met,
    /// How many met each.
    met_by: Met,
}

/// Plays them all.
pub fn play_range(seeds: Seeds) -> Tally {
    seeds.play(|seed, tally: &mut Tally| {
        let outcome = play(&draw(seed), false);
        tally.add(seed, &outcome);
        outcome.passed()
    })
}

/// Plays one, and what is to be printed of it; whether it passed.
pub fn one(seed: u64, is_told: bool, is_minimised: bool) -> (String, bool) {
    let mut schedule = draw(seed);
    let mut text = String::new();
    // Writing to a string does not fail.
    if is_minimised {
        let (smaller, tried) = minimise(&schedule);
        let (left, all) = (smaller.turns.len(), schedule.turns.len());
        let _ = writeln!(text, "{left} of {all} turns are left, {tried} tried");
        for turn in &smaller.turns {
            let _ = writeln!(text, "  {:6} ms later: {:?}", turn.after.as_millis(), turn.step);
        }
        schedule = smaller;
    }
    let outcome = play(&schedule, is_told);
    for line in &outcome.story {
        let _ = writeln!(text, "{line}");
    }
    text.push_str(&format!("{schedule}{}", outcome.verdict()));
    (text, outcome.passed())
}

// === impl Tally ===

impl Sum for Tally {
    fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.failed.sort();
        self.events += other.events;
        self.time += other.time;
        self.met.add(&other.met);
        self.met_by.add(&other.met_by);
    }
}

impl Tally {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.events += outcome.events;
        self.time += outcome.time;
        self.met.add(&outcome.met);
        self.met_by.add(&outcome.met.once());
        match outcome.wrong.first() {
            None => self.passed += 1,
            Some(wrong) => self.failed.push((seed, wrong.clone())),
        }
    }

    /// Whether none failed.
    pub fn passed(&self) -> bool {
        self.failed.is_empty()
    }

    /// What all of them met together.
    pub const fn met(&self) -> &Met {
        &self.met
    }

    /// Those that failed, a line each.
    pub fn failures(&self) -> String {
        failures(&self.failed, MOST_SAID)
    }

    /// The figures; the last line says how many passed.
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn text(&self, elapsed: Duration, threads: usize) -> String {
        let played = self.passed + self.failed.len() as u64;
        let mut text = self.failures();
        let _ = writeln!(text, "  met in all, by so many of {played}:");
        for (word, many) in self.met.counts() {
            let _ = writeln!(text, "{many:10} {:8}  {word}", self.met_by.of(word));
        }
        let spent = elapsed.as_secs_f64() * threads as f64;
        let _ = writeln!(
            text,
            "{} events, {:.1} virtual hours in {:.1} s: {:.2} ms of a core per schedule",
            self.events,
            self.time.as_secs_f64() / 3600.0,
            elapsed.as_secs_f64(),
            spent * 1000.0 / (played.max(1) as f64),
        );
        let _ = writeln!(text, "{} passed, {} failed", self.passed, self.failed.len());
        text
    }
}
