//! The one place that turns the machine's clock into a [`Moment`].

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use windlass_protocol::Moment;

/// A clock that never jumps: it reads the wall clock once and adds what has elapsed.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    at: Moment,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { started: Instant::now(), at: Moment::default().after(since) }
    }

    /// Now.
    pub fn now(&self) -> Moment {
        self.at.after(self.started.elapsed())
    }

    /// How long until `moment`; zero if it has passed.
    pub fn until(&self, moment: Moment) -> Duration {
        moment.since(self.now())
    }
}
