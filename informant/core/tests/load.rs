//! Load over short windows, as tables: what a sample weighs, and when there is a figure.

use windlass_informant_core::load::tasks;
use windlass_informant_core::{Averages, Load};
use windlass_protocol::Moment;

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
    let (mut load, mut sampled) = (Load::default(), 0);
    for (millis, five, fifteen) in [
        (0, None, None),
        (4_900, None, None),
        (5_000, Some(4.0), None),
        (14_900, Some(4.0), None),
        (15_000, Some(4.0), Some(4.0)),
    ] {
        sample(&mut load, sampled, millis, 4);
        sampled = millis + 100;
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
    assert!((tasks(1, 2) - 3.0).abs() < 1e-9);
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
