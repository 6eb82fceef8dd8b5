//! Median and maximum.

use std::time::Duration;

/// What is said of several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) most: f64,
}

// === impl Summary ===

impl Summary {
    /// In seconds; `None` of nothing.
    pub(crate) fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut seconds: Vec<f64> = times.into_iter().map(|time| time.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let (most, middle) = (*seconds.last()?, seconds.len() / 2);
        let median = if seconds.len() % 2 == 1 {
            seconds[middle]
        } else {
            f64::midpoint(seconds[middle - 1], seconds[middle])
        };
        Some(Self { median, most })
    }

    /// How many times the other one this is.
    pub(crate) fn over(self, other: Self) -> Self {
        Self { median: self.median / other.median, most: self.most / other.most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_and_one_slow_run_is_the_maximum() {
        let of = |millis: &[u64]| Summary::of(millis.iter().copied().map(Duration::from_millis));
        assert_eq!(of(&[9000, 1000, 2000]), Some(Summary { median: 2.0, most: 9.0 }));
        assert_eq!(of(&[4000, 1000, 2000, 3000]), Some(Summary { median: 2.5, most: 4.0 }));
        assert_eq!(of(&[]), None);
    }
}
