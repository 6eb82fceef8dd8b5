//! Load over short windows, from samples of the run queue.
//!
//! As the kernel computes its own averages: an exponentially damped mean of how many tasks
//! run or wait, with the window as time constant; so the same load gives the same figure as
//! the kernel's, sooner. Counted are the tasks that are runnable and, as in the kernel's load
//! average, those in uninterruptible sleep; of those the kernel tells cheaply only the ones
//! that wait for I/O (`procs_blocked`), which are nearly all.
//!
//! A gap in the samples is a gap, not load. Between two samples at most two seconds apart the mean of
//! both counts; after a longer gap, and at the start, every window begins anew. A window has a
//! figure once it is filled: after five seconds of samples the one over five seconds exists.
//!
//! A window begins with nothing, and its mean is divided by the weight of what was measured. So a
//! steady load has its true figure from the first on, and no sample weighs more than any other of
//! its age. A mean that began with the value of the first sample would, as the window fills, still
//! owe it 37 %: the burst in which a stopped or starting guest wakes up would be taken for load.
//! The price: until a window was filled three times over, its figure is the mean of less time than
//! later, and follows a change a little faster.

use std::time::Duration;
use windlass_protocol::Moment;

/// The windows, which are the time constants of the averages too.
const WINDOWS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];

/// Samples further apart than this say nothing of the time between them; and after this long
/// without a sample there is no figure: missing is not zero.
const GAP: Duration = Duration::from_secs(2);

/// The averages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Samples without a gap, up to the last one.
    row: Option<Row>,
}

/// Load averages; a window that is not filled has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Averages {
    /// Over five seconds.
    pub five_seconds: Option<f64>,
    /// Over fifteen seconds.
    pub fifteen_seconds: Option<f64>,
}

/// A row of samples without a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    began: Moment,
    last: Moment,
    /// Tasks in the last sample.
    tasks: f64,
    /// Damped sums, by window.
    sums: [f64; 2],
}

// === impl Load ===

impl Load {
    /// Takes a sample of how many tasks run or wait.
    pub fn sampled(&mut self, now: Moment, tasks: f64) {
        self.row = Some(match self.row.filter(|row| row.lasts(now)) {
            Some(row) => row.followed(now, tasks),
            None => Row { began: now, last: now, tasks, sums: [0.0; 2] },
        });
    }

    /// The averages of the windows that are filled; of none while samples are missing.
    pub fn averages(&self, now: Moment) -> Averages {
        let row = self.row.filter(|row| row.lasts(now));
        let [five_seconds, fifteen_seconds] = [0, 1].map(|window| row?.average(window));
        Averages { five_seconds, fifteen_seconds }
    }

    /// Whether load is being sampled.
    pub fn is_sampled(&self, now: Moment) -> bool {
        self.row.is_some_and(|row| row.lasts(now))
    }
}

// === impl Row ===

impl Row {
    /// Whether no sample is missing up to now.
    fn lasts(&self, now: Moment) -> bool {
        now.since(self.last) <= GAP
    }

    /// The row with one sample more.
    fn followed(self, now: Moment, tasks: f64) -> Self {
        let passed = now.since(self.last);
        let mean = f64::midpoint(self.tasks, tasks);
        let mut sums = self.sums;
        for (sum, window) in sums.iter_mut().zip(WINDOWS) {
            let weight = weight(passed, window);
            *sum = *sum * (1.0 - weight) + mean * weight;
        }
        Self { began: self.began, last: now.max(self.last), tasks, sums }
    }

    fn average(&self, window: usize) -> Option<f64> {
        let measured = self.last.since(self.began);
        let length = WINDOWS[window];
        (measured >= length).then(|| self.sums[window] / weight(measured, length))
    }
}

/// The tasks that count as load: those that run or could run, without the one that took the sample, and those
/// that wait for I/O.
pub fn tasks(runnable: u32, blocked: u32) -> f64 {
    f64::from(runnable.saturating_add(blocked))
}

/// How much of a damped mean the last `passed` of it make up.
fn weight(passed: Duration, window: Duration) -> f64 {
    1.0 - (-passed.as_secs_f64() / window.as_secs_f64()).exp()
}
