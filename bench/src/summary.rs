//! Median and maximum, or median and spread.

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
        let Spread { median, most, .. } =
            Spread::of(times.into_iter().map(|time| time.as_secs_f64()))?;
        Some(Self { median, most })
    }

    /// How many times the other one this is.
    pub(crate) fn over(self, other: Self) -> Self {
        Self { median: self.median / other.median, most: self.most / other.most }
    }
}

/// What is said of figures of several turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

// === impl Spread ===

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (least, most, middle) = (*figures.first()?, *figures.last()?, figures.len() / 2);
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            f64::midpoint(figures[middle - 1], figures[middle])
        };
        Some(Self { least, median, most })
    }

    /// Of each turn, how many times the other's figure this one's is.
    pub(crate) fn ratio(these: &[f64], others: &[f64]) -> Option<Self> {
        Self::of(these.iter().zip(others).map(|(this, other)| this / other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_the_same_turn() {
        let spread = |least, median, most| Some(Spread { least, median, most });
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), spread(1.0, 2.5, 4.0));
        assert_eq!(Spread::ratio(&[8.0, 2.0, 9.0], &[4.0, 2.0, 3.0]), spread(1.0, 2.0, 3.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_median_is_in_the_middle_and_one_slow_run_is_the_maximum() {
        let of = |millis: &[u64]| Summary::of(millis.iter().copied().map(Duration::from_millis));
        assert_eq!(of(&[9000, 1000, 2000]), Some(Summary { median: 2.0, most: 9.0 }));
        assert_eq!(of(&[4000, 1000, 2000, 3000]), Some(Summary { median: 2.5, most: 4.0 }));
        assert_eq!(of(&[]), None);
    }
}
