//! Plays what was asked for, and prints how it came out.

use crate::arguments::Arguments;
use crate::cluster;
use crate::draw::draw;
use crate::gaps::unexplained;
use crate::minimise::minimise;
use crate::play::play;
use crate::schedule::Schedule;
use crate::seeds::Seeds;
use crate::tally::Tally;
use anyhow::{Result, ensure};
use std::io::{self, Write};
use std::time::{Duration, Instant};

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

/// Plays them all; `listed`: with books that know of VMs by a list alone.
pub fn play_range(seeds: Seeds, listed: bool) -> Tally {
    seeds.play(|seed, tally: &mut Tally| {
        let schedule = drawn(seed, listed);
        let outcome = play(&schedule, false);
        tally.add(&schedule, &outcome);
        outcome.passed()
    })
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
    say(&format!("{schedule}{}", outcome.verdict()))?;
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
    let seeds = Seeds { from, count, until_failure, until, threads };
    if arguments.cluster {
        let tally = cluster::run::play_range(seeds);
        say(&tally.text(began.elapsed(), threads))?;
        return Ok(tally.passed());
    }
    let tally = play_range(seeds, arguments.listed);
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

fn say(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
