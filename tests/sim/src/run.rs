//! Plays what was asked for, and prints how it came out.

use crate::arguments::Arguments;
use crate::cluster;
use crate::draw::draw;
use crate::gaps::unexplained;
use crate::minimise::minimise;
use crate::play::{Outcome, play};
use crate::schedule::Schedule;
use crate::tally::Tally;
use anyhow::{Result, ensure};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
    /// With books that know of VMs by a list alone.
    pub listed: bool,
    /// How many at a time; at least one.
    pub threads: usize,
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

/// Plays them all, several at a time. Which were played does not depend on how many at a time,
/// unless it stops early.
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
            let schedule = drawn(seed, range.listed);
            let outcome = play(&schedule, false);
            if !outcome.passed() && range.until_failure {
                stop.store(true, Ordering::Relaxed);
            }
            tally.add(&schedule, &outcome);
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

fn drawn(seed: u64, listed: bool) -> Schedule {
    let schedule = draw(seed);
    if listed { schedule.with_lists() } else { schedule }
}

fn one(seed: u64, arguments: &Arguments) -> Result<bool> {
    if arguments.cluster {
        let (text, passed) = cluster::run::one(seed, arguments.trace, arguments.minimise);
        say(&text)?;
        return Ok(passed);
    }
    let mut schedule = drawn(seed, arguments.listed);
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
    let threads = match arguments.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    ensure!(threads > 0, "--threads 0: none would play");
    ensure!(arguments.schedules > 0, "--schedules 0: there would be nothing to play");
    let began = Instant::now();
    let (from, until_failure) = (arguments.from_seed, arguments.until_failure);
    let count = if arguments.minutes.is_some() { u64::MAX } else { arguments.schedules };
    let until = arguments.minutes.map(|minutes| began + Duration::from_secs(minutes * 60));
    if arguments.cluster {
        let range = cluster::run::Range { from, count, until_failure, until, threads };
        let tally = cluster::run::play_range(range);
        say(&tally.text(began.elapsed(), threads))?;
        return Ok(tally.passed());
    }
    let tally =
        play_range(Range { from, count, until_failure, until, listed: arguments.listed, threads });
    if arguments.coverage {
        say(&format!("{}\n", tally.coverage().text()))?;
        let (open, argued) = unexplained(&tally.coverage().gaps());
        say(&format!("{open}{argued} cells are empty by design\n"))?;
    }
    say(&tally.text(began.elapsed(), threads))?;
    Ok(tally.passed())
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
