//! Waits after failures: longer each time, with some spread, never longer than five seconds.

use crate::event::Problem;
use std::time::Duration;
use windlass_protocol::Moment;

/// After the first failure.
const LEAST: Duration = Duration::from_millis(250);

/// After many: a server that is back is found by then.
const MOST: Duration = Duration::from_secs(5);

/// One kind of request, and how it goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Moment>,
    problem: Option<Problem>,
}

impl Backoff {
    /// It failed; it is tried again after a while, which `spread` makes shorter or longer by up
    /// to a quarter.
    pub(crate) fn failed(&mut self, now: Moment, problem: Problem, spread: u64) {
        let wait = LEAST.saturating_mul(1 << self.failures.min(10)).min(MOST);
        let percent = u32::try_from(75 + spread % 51).unwrap_or(100);
        self.until = Some(now.after(wait * percent / 100));
        self.failures = self.failures.saturating_add(1);
        self.problem = Some(problem);
    }

    /// It succeeded.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Until when nothing is tried.
    pub(crate) fn until(&self, now: Moment) -> Option<Moment> {
        self.until.filter(|until| *until > now)
    }

    /// What went wrong last, if nothing has gone right since.
    pub(crate) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_five_seconds_and_a_success_ends_them() {
        let (mut rest, mut waits) = (Backoff::default(), Vec::new());
        for spread in [25, 25, 25, 25, 25, 25, 25, 0, 50] {
            let now = Moment::default();
            rest.failed(now, Problem::Slow, spread);
            waits.push(rest.until(now).unwrap().since(now).as_millis());
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 5000, 5000, 3750, 6250]);
        rest.succeeded();
        assert_eq!((rest.until(Moment::default()), rest.problem()), (None, None));
    }
}
