//! Load over short windows, from samples of the run queue.
//!
//! As the kernel computes its own averages: an exponentially damped mean of how many tasks
//! run or wait, with the window as time constant; so the same load gives the same figure as
//! the kernel's, sooner. Counted are the tasks that are runnable and, as in the kernel's load
//! average, those in uninterruptible sleep; of those the kernel tells cheaply only the ones
//! that wait for I/O (`procs_blocked`), which are nearly all.
//!
//! A gap in the samples is a gap, not load. Between two samples at most [`GAP`] apart the mean of
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

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQueue {
    /// Tasks that run or could run, without the one that took the sample.
    pub runnable: u32,
    /// Tasks that wait for I/O.
    pub blocked: u32,
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

// === impl RunQueue ===

impl RunQueue {
    /// The tasks that count as load.
    pub fn tasks(self) -> f64 {
        f64::from(self.runnable.saturating_add(self.blocked))
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

/// How much of a damped mean the last `passed` of it make up.
fn weight(passed: Duration, window: Duration) -> f64 {
    1.0 - (-passed.as_secs_f64() / window.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_window_brings_the_average_to_63_percent_of_a_step() {
        let mut load = Load::default();
        sample(&mut load, 0, 60_000, 0);
        sample(&mut load, 60_100, 65_000, 10);
        let averages = load.averages(at(65_000));
        // Half of the first tenth of a second counts as the mean of both sides of the step.
        assert_close(averages.five_seconds, 6.32, 0.05);
        assert_close(averages.fifteen_seconds, 2.83, 0.05);
    }

    #[test]
    fn the_figure_does_not_depend_on_the_rate_of_samples() {
        let [mut slow, mut fast] = [Load::default(); 2];
        for tick in 0..=2_000 {
            fast.sampled(at(tick * 10), 3.0);
            if tick % 100 == 0 {
                slow.sampled(at(tick * 10), 3.0);
            }
        }
        let (slow, fast) = (slow.averages(at(20_000)), fast.averages(at(20_000)));
        assert_close(slow.five_seconds, 3.0, 1e-9);
        assert_close(fast.five_seconds, 3.0, 1e-9);
        assert_close(slow.fifteen_seconds, 3.0, 1e-9);
        assert_close(fast.fifteen_seconds, 3.0, 1e-9);
    }

    #[test]
    fn a_window_has_a_figure_once_it_is_filled() {
        let mut load = Load::default();
        for (millis, five, fifteen) in [
            (0, None, None),
            (4_900, None, None),
            (5_000, Some(4.0), None),
            (14_900, Some(4.0), None),
            (15_000, Some(4.0), Some(4.0)),
        ] {
            let since = load.row.map_or(0, |row| row.last.millis() + 100);
            sample(&mut load, since, millis, 4);
            let Averages { five_seconds, fifteen_seconds } = load.averages(at(millis));
            let whole = |figure: Option<f64>| figure.map(f64::round);
            assert_eq!([five_seconds, fifteen_seconds].map(whole), [five, fifteen], "{millis} ms");
        }
    }

    #[test]
    fn a_gap_begins_every_window_anew() {
        let mut load = Load::default();
        sample(&mut load, 0, 60_000, 0);
        // Whatever wakes up with the sampler: it is there once, and is no load of 20 s.
        load.sampled(at(80_000), 9.0);
        assert_eq!(load.averages(at(80_000)), Averages::default());
        assert!(load.is_sampled(at(80_000)));
        sample(&mut load, 80_100, 84_900, 0);
        assert_eq!(load.averages(at(84_900)), Averages::default());
        sample(&mut load, 85_000, 85_000, 0);
        let averages = load.averages(at(85_000));
        assert!(averages.five_seconds.is_some_and(|five| five < 0.1), "{averages:?}");
        assert_eq!(averages.fifteen_seconds, None);
    }

    #[test]
    fn load_right_after_a_gap_has_its_true_figure_as_soon_as_a_window_is_filled() {
        let mut load = Load::default();
        sample(&mut load, 0, 60_000, 0);
        sample(&mut load, 80_000, 85_000, 4);
        assert_close(load.averages(at(85_000)).five_seconds, 4.0, 1e-9);
    }

    #[test]
    fn up_to_two_seconds_the_mean_of_both_samples_counts() {
        for (gap, expected) in [(1_000, Some(1.81)), (2_000, Some(3.30)), (2_001, None)] {
            let mut load = Load::default();
            sample(&mut load, 0, 60_000, 0);
            load.sampled(at(60_000 + gap), 20.0);
            let five = load.averages(at(60_000 + gap)).five_seconds;
            match expected {
                Some(expected) => assert_close(five, expected, 0.01),
                None => assert_eq!(five, None, "after {gap} ms"),
            }
        }
    }

    #[test]
    fn without_samples_there_is_no_figure() {
        let mut load = Load::default();
        assert_eq!(load.averages(at(0)), Averages::default());
        assert!(!load.is_sampled(at(0)));
        sample(&mut load, 0, 20_000, 1);
        assert!(load.averages(at(22_000)).fifteen_seconds.is_some());
        assert_eq!(load.averages(at(22_001)), Averages::default());
        assert!(!load.is_sampled(at(22_001)));
    }

    #[test]
    fn tasks_that_wait_for_io_count() {
        assert!((RunQueue { runnable: 1, blocked: 2 }.tasks() - 3.0).abs() < 1e-9);
    }

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    /// Ten samples a second, the last at `until`.
    fn sample(load: &mut Load, from: u64, until: u64, tasks: u32) {
        for millis in (from..=until).step_by(100) {
            load.sampled(at(millis), f64::from(tasks));
        }
    }

    #[track_caller]
    fn assert_close(figure: Option<f64>, expected: f64, by: f64) {
        assert!(figure.is_some_and(|figure| (figure - expected).abs() <= by), "{figure:?}");
    }
}
