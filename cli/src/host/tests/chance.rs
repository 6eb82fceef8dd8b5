//! The game of chance for a whole host: its controller, socket, agent, runners and books as they are,
//! played with VMs, files, orders and a disk that a seed turns, in virtual time.
//!
//! A world is driven by VM files, the socket and what attaches only. What must hold is checked
//! after each step and once all is well again (`judge`). Guests have no informant that is reached,
//! so no byte goes over a network; a VM whose file names another place for figures is acted on
//! all the same, by orders and bounds. One thread plays one world, and everything in it comes from the
//! seed: the same seed plays the same game.
//!
//! `WINDLASS_CHANCE_SEEDS` says how many seeds are played, `WINDLASS_CHANCE_SEED` plays one and prints it.

mod draw;
mod game;
mod judge;
mod machines;

use game::Game;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Seeds that are played where nothing else is said.
const SEEDS: u64 = 500;
/// Seeds that are played twice.
const REPLAYED: u64 = 10;
/// A world that takes longer, on a machine of whatever speed, goes round in circles.
const ENDS_WITHIN: Duration = Duration::from_secs(120);
/// Threads that play.
const PLAYERS: u64 = 2;

#[test]
fn whatever_happens_the_books_hold_what_is_there_and_orders_are_answered() {
    if let Some(seed) = variable("WINDLASS_CHANCE_SEED") {
        let (log, outcome) = Game::play(seed);
        panic!("{}\n{outcome:?}", log.join("\n"));
    }
    let seeds = variable("WINDLASS_CHANCE_SEEDS").unwrap_or(SEEDS);
    let failed = play(0..seeds, |seed| Game::play(seed).1.err());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_same_seed_plays_the_same_game() {
    let failed = play(0..REPLAYED, |seed| {
        let (once, again) = (Game::play(seed).0, Game::play(seed).0);
        let at = once.iter().zip(&again).position(|(one, other)| one != other);
        let differs = at.map(|at| format!("{} is then {}", once[at], again[at]));
        differs.or((once.len() != again.len()).then(|| "one game is longer".to_owned()))
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Plays seeds on some threads, each within a bound, and says how to replay those that fail.
fn play(seeds: std::ops::Range<u64>, judge: fn(u64) -> Option<String>) -> Vec<String> {
    let mut failed = Vec::new();
    let next = std::sync::Arc::new(AtomicU64::new(seeds.start));
    let (played, results) = mpsc::channel();
    for _ in 0..PLAYERS {
        let (next, played, end) = (next.clone(), played.clone(), seeds.end);
        // Not waited for where it goes round in circles: it ends with the process.
        thread::spawn(move || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end || played.send((seed, judge(seed))).is_err() {
                    return;
                }
            }
        });
    }
    for _ in seeds {
        match results.recv_timeout(ENDS_WITHIN) {
            Ok((_, None)) => {}
            Ok((seed, Some(why))) => {
                failed.push(format!("WINDLASS_CHANCE_SEED={seed}: {why}"));
            }
            Err(_) => {
                let last = next.load(Ordering::Relaxed);
                failed.push(format!("a world did not end; it is among the last before {last}"));
                break;
            }
        }
    }
    failed
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
