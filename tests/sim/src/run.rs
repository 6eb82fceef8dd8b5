//! Plays what was asked for, and prints how it came out.

use crate::arguments::Arguments;
use crate::draw::draw;
use crate::minimise::minimise;
use crate::play::{Outcome, play};
use crate::schedule::Schedule;
use anyhow::{Result, ensure};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Seeds of failures that are listed.
const LISTED: usize = 20;

/// What many schedules came to.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    failed: Vec<(u64, String)>,
    events: u64,
    time: Duration,
}

/// Does it. Says whether every schedule passed.
///
/// # Errors
/// What was asked for makes no sense, or standard output is gone.
pub fn run(arguments: &Arguments) -> Result<bool> {
    match arguments.seed {
        Some(seed) => one(seed, arguments),
        None => many(arguments),
    }
}

fn one(seed: u64, arguments: &Arguments) -> Result<bool> {
    let mut schedule = draw(seed);
    if arguments.minimise {
        let (smaller, tried) = minimise(&schedule);
        say(&format!(
            "{} of {} turns are left, {tried} tried\n",
            smaller.turns.len(),
            schedule.turns.len()
        ))?;
        schedule = smaller;
        say(&turns(&schedule))?;
    }
    let outcome = play(&schedule, arguments.trace);
    for line in &outcome.story {
        say(&format!("{line}\n"))?;
    }
    say(&format!("{schedule}{}", verdict(&outcome)))?;
    Ok(outcome.passed())
}

fn many(arguments: &Arguments) -> Result<bool> {
    let threads = arguments.threads.map_or_else(std::thread::available_parallelism, |count| {
        std::num::NonZero::new(count)
            .ok_or_else(|| io::Error::other("--threads 0: none would play"))
    })?;
    let last = match arguments.minutes {
        Some(_) => u64::MAX,
        None => arguments.from_seed.saturating_add(arguments.schedules),
    };
    ensure!(last > arguments.from_seed, "--schedules 0: there would be nothing to play");
    let (next, stop) = (AtomicU64::new(arguments.from_seed), AtomicBool::new(false));
    let tally = Mutex::new(Tally::default());
    let began = Instant::now();
    let over = || arguments.minutes.is_some_and(|m| began.elapsed() >= Duration::from_secs(m * 60));
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && !over() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last {
                        return;
                    }
                    let outcome = play(&draw(seed), false);
                    if !outcome.passed() && arguments.until_failure {
                        stop.store(true, Ordering::Relaxed);
                    }
                    tally.lock().unwrap_or_else(PoisonError::into_inner).add(seed, outcome);
                }
            });
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.failed.sort();
    say(&tally.text(began.elapsed(), threads.get()))?;
    Ok(tally.failed.is_empty())
}

fn turns(schedule: &Schedule) -> String {
    let lines = schedule
        .turns
        .iter()
        .map(|turn| format!("  {:6} ms later: {:?}\n", turn.after.as_millis(), turn.act));
    lines.collect()
}

fn verdict(outcome: &Outcome) -> String {
    let mut text = format!(
        "{} events in {:.1} virtual seconds: {}\n",
        outcome.events,
        outcome.time.as_secs_f64(),
        if outcome.passed() { "passed" } else { "failed" }
    );
    for wrong in &outcome.wrong {
        text.push_str(&format!("  {wrong}\n"));
    }
    text
}

fn say(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

// === impl Tally ===

impl Tally {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.events += outcome.events;
        self.time += outcome.time;
        match outcome.wrong.into_iter().next() {
            None => self.passed += 1,
            Some(wrong) => self.failed.push((seed, wrong)),
        }
    }

    fn text(&self, elapsed: Duration, threads: usize) -> String {
        let mut text = String::new();
        for (seed, wrong) in self.failed.iter().take(LISTED) {
            text.push_str(&format!("seed {seed}: {wrong}\n"));
        }
        let played = self.passed + self.failed.len() as u64;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let per_second = played as f64 / elapsed.as_secs_f64() / threads as f64;
        let hours = self.time.as_secs_f64() / 3600.0;
        text.push_str(&format!(
            "{} passed, {} failed; {} events, {hours:.1} virtual hours in {:.1} s; {per_second:.1} \
             schedules per second and core\n",
            self.passed,
            self.failed.len(),
            self.events,
            elapsed.as_secs_f64()
        ));
        text
    }
}
