//! The requests to one peer: one at a time, and a growing back-off after a failure. And the plan that
//! has requests sent.

use crate::backoff::{Backoff, Jitter};
use crate::event::Action;
use std::time::Duration;
use windlass_protocol::Moment;

/// What to do now, and when to ask again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// At most one action per peer.
    pub actions: Vec<Action>,
    /// The first moment at which the plan may differ without anything happening.
    pub wake_at: Option<Moment>,
}

/// The request to one peer that is under way, and how the last ones went.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InFlight {
    under_way: Option<Request>,
    backoff: Backoff,
    /// When the first request failed since the last answer.
    silent_since: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    action: Action,
    /// Whether the answer will still mean something.
    heard: bool,
}

// === impl Plan ===

impl Plan {
    /// Adds an action, if it is due and its peer may be asked now; or the moment at which it will be.
    pub(crate) fn offer(
        &mut self,
        now: Moment,
        in_flight: &InFlight,
        due: Option<(Moment, Action)>,
    ) {
        let Some((at, action)) = due else { return };
        if in_flight.is_free(now) && at <= now {
            self.actions.push(action);
        } else if in_flight.busy().is_none() {
            self.wake(now, at.max(in_flight.free_at().unwrap_or(at)));
        }
    }

    /// Something ends by itself then.
    pub(crate) fn wake(&mut self, now: Moment, at: Moment) {
        if at > now {
            self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// The first back-off after a failure, and the longest that failures in a row lead to.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { under_way: None, backoff: Backoff::new(first, longest), silent_since: None }
    }

    /// Whether a request may be sent now.
    pub(crate) fn is_free(&self, now: Moment) -> bool {
        self.under_way.is_none() && self.backoff.is_over(now)
    }

    /// When the back-off ends or ended, if a request failed.
    pub(crate) const fn free_at(&self) -> Option<Moment> {
        self.backoff.ends()
    }

    pub(crate) fn busy(&self) -> Option<Action> {
        self.under_way.map(|request| request.action)
    }

    pub(crate) const fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    pub(crate) const fn silent_since(&self) -> Option<Moment> {
        self.silent_since
    }

    /// Whether the answer to a request under way will mean something.
    pub(crate) fn is_heard(&self) -> bool {
        self.under_way.is_some_and(|request| request.heard)
    }

    pub(crate) fn sent(&mut self, action: Action) {
        self.under_way = Some(Request { action, heard: true });
    }

    /// The answer to the request under way will mean nothing: its session is over.
    pub(crate) fn disregard(&mut self) {
        if let Some(request) = &mut self.under_way {
            request.heard = false;
        }
    }

    /// An answer came: the action that it answers, unless it means nothing any more.
    pub(crate) fn answered(&mut self) -> Option<Action> {
        self.backoff.succeeded();
        self.silent_since = None;
        self.hang_up()
    }

    /// The request under way failed: the action that got no answer, unless that means nothing any more.
    pub(crate) fn failed(&mut self, now: Moment, jitter: &mut Jitter) -> Option<Action> {
        self.backoff.failed(now, jitter);
        self.silent_since.get_or_insert(now);
        self.hang_up()
    }

    fn hang_up(&mut self) -> Option<Action> {
        self.under_way.take().filter(|request| request.heard).map(|request| request.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_and_a_back_off_after_a_failure() {
        let mut requests = InFlight::new(Duration::from_secs(1), Duration::from_secs(4));
        let start = Moment::from_millis(1_000);
        requests.sent(Action::Look);
        assert!(!requests.is_free(start));
        assert_eq!(requests.failed(start, &mut Jitter::new(7)), Some(Action::Look));
        assert!(!requests.is_free(start) && requests.failures() > 0);
        assert!(requests.is_free(requests.free_at().unwrap()));
        requests.sent(Action::Look);
        assert_eq!(requests.answered(), Some(Action::Look));
        assert!(requests.is_free(start) && requests.failures() == 0);
    }

    #[test]
    fn an_answer_to_a_session_that_is_over_means_nothing() {
        let mut requests = InFlight::new(Duration::from_secs(1), Duration::from_secs(4));
        requests.sent(Action::Measure);
        requests.disregard();
        assert_eq!(requests.answered(), None);
        assert!(requests.is_free(Moment::default()));
    }
}
