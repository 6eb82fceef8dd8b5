//! Which readings tell something about a moment.

use crate::recording::Reading;
use std::time::Duration;
use windlass_protocol::Moment;

/// A figure that is further away than this says nothing about a moment. A guest whose vCPUs
/// share a core with another's takes a second or two to answer.
pub(crate) const NEAR: Duration = Duration::from_secs(6);

/// The readings from the last that ended before `from` to the first that began after `to`;
/// `None` if either is missing or not near.
pub(super) fn around<T>(
    readings: &[Reading<T>],
    from: Moment,
    to: Moment,
) -> Option<&[Reading<T>]> {
    let first = readings.partition_point(|reading| reading.to < from).checked_sub(1)?;
    let last = readings.partition_point(|reading| reading.from <= to);
    let (before, after) = (readings.get(first)?, readings.get(last)?);
    let near = from.since(before.to) <= NEAR && after.from.since(to) <= NEAR;
    near.then(|| &readings[first..=last])
}

/// The smallest of `figure` over the readings around a moment.
pub(super) fn least_at<T, F: Ord>(
    readings: &[Reading<T>],
    at: Moment,
    figure: impl Fn(&T) -> F,
) -> Option<F> {
    around(readings, at, at)?.iter().map(|reading| figure(&reading.value)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(windows: &[(u64, u64)]) -> Vec<Reading<u64>> {
        let at = Moment::from_millis;
        windows
            .iter()
            .map(|&(from, to)| Reading { from: at(from), to: at(to), value: from })
            .collect()
    }

    #[test]
    fn readings_around_a_window_reach_from_before_to_after_it() {
        let readings = readings(&[(0, 10), (20, 30), (40, 50), (60, 70)]);
        let values = |from, to| {
            around(&readings, Moment::from_millis(from), Moment::from_millis(to))
                .map(|found| found.iter().map(|r| r.value).collect::<Vec<_>>())
        };
        assert_eq!(values(32, 35), Some(vec![20, 40]));
        assert_eq!(values(25, 35), Some(vec![0, 20, 40]));
        assert_eq!(values(30, 40), Some(vec![0, 20, 40, 60]));
        assert_eq!(values(5, 8), None);
        assert_eq!(values(65, 80), None);
    }

    #[test]
    fn a_reading_far_away_says_nothing() {
        let readings = readings(&[(0, 10), (20_000, 20_010)]);
        let at = Moment::from_millis(1_000);
        assert_eq!(around(&readings, at, at), None);
    }
}
