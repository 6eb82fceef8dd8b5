//! Plays the clusters that were asked for, and prints how they came out.

use super::draw::draw;
use super::play::{Outcome, minimise, play};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windlass_world::cluster::Met;

/// Failures that are listed, and characters that are said of each.
const LISTED: usize = 20;
const MOST_SAID: usize = 300;

/// Which schedules to play, and when to stop.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The first seed.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// Stop at the first that fails.
    pub until_failure: bool,
    /// Stop then, however few were played.
    pub until: Option<Instant>,
    /// How many at a time; at least one.
    pub threads: usize,
}

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

/// Plays them all, several at a time.
pub fn play_range(range: Range) -> Tally {
    let (next, stop) = (AtomicU64::new(range.from), AtomicBool::new(false));
    let last = range.from.saturating_add(range.count);
    let over = || range.until.is_some_and(|until| Instant::now() >= until);
    let play_on = || {
        let mut tally = Tally::default();
        while !stop.load(Ordering::Relaxed) && !over() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                break;
            }
            let outcome = play(&draw(seed), false);
            stop.fetch_or(!outcome.passed() && range.until_failure, Ordering::Relaxed);
            tally.add(seed, &outcome);
        }
        tally
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..range.threads.max(1)).map(|_| scope.spawn(play_on)).collect();
        for thread in threads {
            match thread.join() {
                Ok(played) => tally.merge(played),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    tally
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
    let passed = outcome.passed();
    let word = if passed { "passed" } else { "failed" };
    let seconds = outcome.time.as_secs_f64();
    let _ = writeln!(
        text,
        "{schedule}{} events in {seconds:.1} virtual seconds: {word}",
        outcome.events
    );
    for wrong in &outcome.wrong {
        let _ = writeln!(text, "  {wrong}");
    }
    (text, passed)
}

// === impl Tally ===

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

    fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.failed.sort();
        self.events += other.events;
        self.time += other.time;
        self.met.add(&other.met);
        self.met_by.add(&other.met_by);
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
        let mut text = String::new();
        for (seed, wrong) in self.failed.iter().take(LISTED) {
            let wrong: String = wrong.chars().take(MOST_SAID).collect();
            let _ = writeln!(text, "seed {seed}: {wrong}");
        }
        text
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
