//! Many seeds, played several at a time.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Failures that are listed; `--seed` says all of one.
const LISTED: usize = 20;

/// Which seeds to play, and when to stop.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first.
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

/// What many seeds came to.
pub(crate) trait Sum: Default + Send {
    /// Adds what another one counted.
    fn merge(&mut self, other: Self);
}

// === impl Seeds ===

impl Seeds {
    /// Plays them all; `play` adds one to what they came to, and says whether it passed. Which were played does not
    /// depend on how many at a time, unless it stops early.
    pub(crate) fn play<S: Sum>(self, play: impl Fn(u64, &mut S) -> bool + Sync) -> S {
        let (next, stop) = (AtomicU64::new(self.from), AtomicBool::new(false));
        let last = self.from.saturating_add(self.count);
        let over = || self.until.is_some_and(|until| Instant::now() >= until);
        let play_on = || {
            let mut sum = S::default();
            while !stop.load(Ordering::Relaxed) && !over() {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= last {
                    break;
                }
                if !play(seed, &mut sum) && self.until_failure {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            sum
        };
        let mut sum = S::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(play_on)).collect();
            for thread in threads {
                match thread.join() {
                    Ok(played) => sum.merge(played),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        sum
    }
}

/// Seeds that failed and what went wrong first, a line each, of at most so many characters.
pub(crate) fn failures(failed: &[(u64, String)], most_said: usize) -> String {
    let mut text = String::new();
    for (seed, wrong) in failed.iter().take(LISTED) {
        let wrong: String = wrong.chars().take(most_said).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "seed {seed}: {wrong}");
    }
    text
}
