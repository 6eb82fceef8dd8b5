//! Time for cores and recorded decisions.
//!
//! A [`Moment`] counts milliseconds since the Unix epoch, but advances with a monotonic clock: at the start
//! of the process `kit::clock` reads the wall clock once, and from then on adds the elapsed time. So
//! moments never jump, can be compared and subtracted, and can be shown as dates.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point in time, in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// This many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// The moment `wait` later, saturating.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The moment `wait` earlier, or the first.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
