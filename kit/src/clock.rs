//! The one place that turns the machine's clocks into a [`Moment`].
//!
//! The wall clock is read once; from then on time advances with the monotonic clock, so
//! moments never jump. It is tokio's monotonic clock, so a test can pause it. [`since_boot`] is for leases alone.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use windlass_protocol::Moment;

/// What time it is, and how to wait for a time. All copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    at_start: Moment,
}

/// The time since the machine was started, by a clock that goes on while the machine sleeps.
///
/// It is for leases: a process that was stopped for a while, with its machine or alone, must know how long that was.
pub fn since_boot() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let (secs, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Moment::default().after(Duration::from_secs(secs) + Duration::from_nanos(nanos))
}

// === impl Clock ===

impl Clock {
    /// A clock that agrees with the wall clock as it is now.
    pub fn system() -> Self {
        // A wall clock before 1970 is a machine without a battery; time starts at zero there.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Moment::default().after(since_epoch))
    }

    /// A clock that shows `moment` now.
    pub fn starting_at(moment: Moment) -> Self {
        Self { start: Instant::now(), at_start: moment }
    }

    /// What time it is.
    pub fn now(&self) -> Moment {
        self.at_start.after(self.start.elapsed())
    }

    /// Waits until `moment`; not at all if it has passed.
    pub async fn sleep_until(&self, moment: Moment) {
        // `now` rounds down to whole milliseconds, so this never wakes before `moment`.
        tokio::time::sleep(moment.since(self.now())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sleeping_ends_when_the_clock_shows_the_moment() {
        let clock = Clock::starting_at(Moment::from_millis(1_000));
        let until = Moment::from_millis(61_500);
        clock.sleep_until(until).await;
        assert_eq!(clock.now(), until);
        clock.sleep_until(Moment::from_millis(5)).await;
        assert_eq!(clock.now(), until);
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_clock_shows_this_century_and_advances() {
        let clock = Clock::system();
        let first = clock.now();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now().since(first), Duration::from_secs(3));
        assert!(first > Moment::from_millis(1_600_000_000_000));
    }
}
