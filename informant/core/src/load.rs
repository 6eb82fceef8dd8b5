//! Load over short windows, from samples of the run queue.
//!
//! As the kernel computes its own averages: an exponentially damped mean of how many tasks
//! run or wait, with the window as time constant; so the same load gives the same figure as
//! the kernel's, sooner. Counted are the tasks that are runnable and, as in the kernel's load
//! average, those in uninterruptible sleep; of those the kernel tells cheaply only the ones
//! that wait for I/O (`procs_blocked`), which are nearly all.

use std::time::Duration;
use windlass_protocol::Moment;

/// Time constants of the averages: five and fifteen seconds.
const WINDOWS: [f64; 2] = [5.0, 15.0];

/// After this long without a sample there is no figure: missing is not zero.
const FRESH: Duration = Duration::from_secs(2);

/// The averages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// When the last sample was taken, and the averages then.
    last: Option<(Moment, [f64; 2])>,
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQueue {
    /// Tasks that run or could run, without the one that took the sample.
    pub runnable: u32,
    /// Tasks that wait for I/O.
    pub blocked: u32,
}

impl Load {
    /// Takes a sample. Where there is no average yet, it starts from `before`, the kernel's
    /// figure over one minute: a restart of the informant under load is not a pause in it.
    pub fn sampled(&mut self, now: Moment, queue: RunQueue, before: f64) {
        let tasks = f64::from(queue.runnable.saturating_add(queue.blocked));
        let before = if before.is_finite() && before >= 0.0 { before } else { 0.0 };
        let (then, mut averages) = self.last.unwrap_or((now, [before; 2]));
        let passed = now.since(then).as_secs_f64();
        for (average, window) in averages.iter_mut().zip(WINDOWS) {
            let kept = (-passed / window).exp();
            *average = *average * kept + tasks * (1.0 - kept);
        }
        self.last = Some((now, averages));
    }

    /// Averages over five and fifteen seconds; `None` while samples are missing.
    pub fn averages(&self, now: Moment) -> Option<[f64; 2]> {
        self.last.filter(|(then, _)| now.since(*then) <= FRESH).map(|(_, averages)| averages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    fn queue(runnable: u32) -> RunQueue {
        RunQueue { runnable, blocked: 0 }
    }

    #[test]
    fn one_window_brings_the_average_to_63_percent_of_a_step() {
        let mut load = Load::default();
        for tick in 0..=50 {
            load.sampled(at(tick * 100), queue(10), 0.0);
        }
        let [five, fifteen] = load.averages(at(5000)).unwrap();
        assert!((five - 6.321).abs() < 0.001, "{five}");
        assert!((fifteen - 2.835).abs() < 0.001, "{fifteen}");
    }

    #[test]
    fn the_figure_does_not_depend_on_the_rate_of_samples() {
        let [mut slow, mut fast] = [Load::default(); 2];
        for tick in 0..=1000 {
            fast.sampled(at(tick * 10), queue(3), 1.0);
            if tick % 10 == 0 {
                slow.sampled(at(tick * 10), queue(3), 1.0);
            }
        }
        let (slow, fast) = (slow.averages(at(10_000)).unwrap(), fast.averages(at(10_000)).unwrap());
        assert!((slow[0] - fast[0]).abs() < 1e-9 && (slow[1] - fast[1]).abs() < 1e-9);
    }

    #[test]
    fn a_restart_under_load_continues_from_the_kernel_s_figure() {
        let mut load = Load::default();
        load.sampled(at(0), queue(0), 4.0);
        assert_eq!(load.averages(at(0)), Some([4.0, 4.0]));
        let mut absurd = Load::default();
        absurd.sampled(at(0), queue(0), f64::NAN);
        assert_eq!(absurd.averages(at(0)), Some([0.0, 0.0]));
    }

    #[test]
    fn without_samples_there_is_no_figure() {
        let mut load = Load::default();
        assert_eq!(load.averages(at(0)), None);
        load.sampled(at(0), queue(1), 0.0);
        assert_eq!(load.averages(at(2001)), None);
    }

    #[test]
    fn tasks_that_wait_for_io_count() {
        let mut load = Load::default();
        load.sampled(at(0), RunQueue { runnable: 0, blocked: 2 }, 0.0);
        load.sampled(at(60_000), RunQueue { runnable: 0, blocked: 2 }, 0.0);
        assert!(load.averages(at(60_000)).unwrap()[0] > 1.99);
    }
}
