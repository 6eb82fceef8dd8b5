//! What many schedules came to.

use crate::play::Outcome;
use crate::schedule::Schedule;
use crate::seeds::{Sum, failures};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use windlass_world::Coverage;

/// Characters that are said of each failure; `--seed` says all.
const MOST_SAID: usize = 160;
/// A long schedule.
const LONG: Duration = Duration::from_secs(600);

/// What many schedules came to.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    /// Seeds, and what went wrong first.
    failed: Vec<(u64, String)>,
    events: u64,
    time: Duration,
    long: u64,
    nodes: Histogram,
    vms: Histogram,
    kinds: Histogram,
    /// Events of each.
    sizes: Histogram,
    /// Virtual seconds of each.
    lengths: Histogram,
    met: Coverage,
}

/// How often each figure was met.
#[derive(Debug, Default)]
struct Histogram(BTreeMap<u64, u64>);

// === impl Tally ===

impl Sum for Tally {
    fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.failed.sort();
        self.events += other.events;
        self.time += other.time;
        self.long += other.long;
        self.nodes.merge(other.nodes);
        self.vms.merge(other.vms);
        self.kinds.merge(other.kinds);
        self.sizes.merge(other.sizes);
        self.lengths.merge(other.lengths);
        self.met.add(&other.met);
    }
}

impl Tally {
    /// One more.
    pub fn add(&mut self, schedule: &Schedule, outcome: &Outcome) {
        self.events += outcome.events;
        self.time += outcome.time;
        self.long += u64::from(schedule.length() >= LONG);
        self.nodes.add(schedule.nodes as u64);
        self.vms.add(schedule.vms as u64);
        self.kinds.add(schedule.faults().len() as u64);
        self.sizes.add(outcome.events);
        self.lengths.add(schedule.length().as_secs());
        self.met.add(&outcome.met);
        match outcome.wrong.first() {
            None => self.passed += 1,
            Some(wrong) => self.failed.push((schedule.seed, wrong.clone())),
        }
    }

    /// Whether none failed.
    pub fn passed(&self) -> bool {
        self.failed.is_empty()
    }

    /// What happened to whom, in which state.
    pub const fn coverage(&self) -> &Coverage {
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
        let hours = self.time.as_secs_f64() / 3600.0;
        let each = |figure: f64| figure / elapsed.as_secs_f64() / threads as f64;
        let mut text = self.failures();
        // Writing to a string does not fail.
        let least = |of: &Histogram| of.least().unwrap_or(0);
        let _ = writeln!(
            text,
            "median (least): {} ({}) nodes, {} ({}) VMs, {} ({}) kinds of fault, {} ({}) events, \
             {} ({}) virtual seconds before the world is kind; {} of {played} last 10 minutes",
            self.nodes.median(),
            least(&self.nodes),
            self.vms.median(),
            least(&self.vms),
            self.kinds.median(),
            least(&self.kinds),
            self.sizes.median(),
            least(&self.sizes),
            self.lengths.median(),
            least(&self.lengths),
            self.long,
        );
        let _ = writeln!(
            text,
            "{} events, {hours:.1} virtual hours in {:.1} s: {:.1} schedules and {:.2} virtual \
             hours per second and core",
            self.events,
            elapsed.as_secs_f64(),
            each(played as f64),
            each(hours),
        );
        let _ = writeln!(text, "{} passed, {} failed", self.passed, self.failed.len());
        text
    }
}

// === impl Histogram ===

impl Histogram {
    fn add(&mut self, figure: u64) {
        *self.0.entry(figure).or_default() += 1;
    }

    fn merge(&mut self, other: Self) {
        for (figure, count) in other.0 {
            *self.0.entry(figure).or_default() += count;
        }
    }

    fn least(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }

    fn median(&self) -> u64 {
        let half = self.0.values().sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, count)| {
            seen += **count;
            seen >= half
        });
        reached.map_or(0, |(figure, _)| *figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let mut histogram = Histogram::default();
        for figure in [7, 1, 3, 3, 9] {
            histogram.add(figure);
        }
        assert_eq!((histogram.median(), histogram.least()), (3, Some(1)));
        assert_eq!((Histogram::default().median(), Histogram::default().least()), (0, None));
    }
}
