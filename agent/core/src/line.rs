//! When a peer may be spoken to: one request at a time, and a growing rest after a failure.

use crate::event::Action;
use crate::rest::{Jitter, Rest};
use std::time::Duration;
use windlass_protocol::{Moment, Peer};

/// The line to one peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    under_way: Option<Request>,
    rest: Rest,
    /// When it first failed since the last answer.
    silent_since: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    action: Action,
    /// False once the answer no longer means anything.
    heard: bool,
}

/// The lines to all peers.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) plugin: Line,
    pub(crate) informant: Line,
    pub(crate) hypervisor: Line,
    pub(crate) metrics: Line,
}

// === impl Line ===

impl Line {
    pub(crate) const fn new(first_rest: Duration, longest_rest: Duration) -> Self {
        Self { under_way: None, rest: Rest::new(first_rest, longest_rest), silent_since: None }
    }

    /// Whether a request may be sent now.
    pub(crate) fn is_free(&self, now: Moment) -> bool {
        self.under_way.is_none() && self.rest.is_over(now)
    }

    /// When it is free again, if that is only a matter of time.
    pub(crate) const fn free_at(&self) -> Option<Moment> {
        self.rest.ends()
    }

    /// The request under way.
    pub(crate) fn busy(&self) -> Option<Action> {
        self.under_way.map(|request| request.action)
    }

    /// Whether the last request failed.
    pub(crate) const fn is_failing(&self) -> bool {
        self.rest.failures() > 0
    }

    /// Failures in a row.
    pub(crate) const fn failures(&self) -> u32 {
        self.rest.failures()
    }

    /// Since when requests have failed, if the last one did.
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
        self.rest.succeeded();
        self.silent_since = None;
        self.hang_up()
    }

    /// It was hung up: the action that got no answer, unless that means nothing any more.
    pub(crate) fn failed(&mut self, now: Moment, jitter: &mut Jitter) -> Option<Action> {
        self.rest.failed(now, jitter);
        self.silent_since.get_or_insert(now);
        self.hang_up()
    }

    fn hang_up(&mut self) -> Option<Action> {
        self.under_way.take().filter(|request| request.heard).map(|request| request.action)
    }
}

// === impl Lines ===

impl Lines {
    /// An informant is never left alone for longer than `retry`.
    pub(crate) fn new(retry: Duration) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        const LONGEST: Duration = Duration::from_secs(5);
        Self {
            plugin: Line::new(SECOND, LONGEST),
            informant: Line::new(SECOND.min(retry), retry),
            hypervisor: Line::new(Duration::from_millis(500), LONGEST),
            metrics: Line::new(SECOND, LONGEST),
        }
    }

    pub(crate) const fn to(&self, peer: Peer) -> &Line {
        match peer {
            Peer::Plugin => &self.plugin,
            Peer::Informant => &self.informant,
            Peer::Hypervisor => &self.hypervisor,
            Peer::Metrics => &self.metrics,
        }
    }

    pub(crate) const fn to_mut(&mut self, peer: Peer) -> &mut Line {
        match peer {
            Peer::Plugin => &mut self.plugin,
            Peer::Informant => &mut self.informant,
            Peer::Hypervisor => &mut self.hypervisor,
            Peer::Metrics => &mut self.metrics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_and_a_rest_after_a_failure() {
        let mut line = Line::new(Duration::from_secs(1), Duration::from_secs(4));
        let start = Moment::from_millis(1_000);
        line.sent(Action::Look);
        assert!(!line.is_free(start));
        assert_eq!(line.failed(start, &mut Jitter::new(7)), Some(Action::Look));
        assert!(!line.is_free(start) && line.is_failing());
        assert!(line.is_free(line.free_at().unwrap()));
        line.sent(Action::Look);
        assert_eq!(line.answered(), Some(Action::Look));
        assert!(line.is_free(start) && !line.is_failing());
    }

    #[test]
    fn an_answer_to_a_session_that_is_over_means_nothing() {
        let mut line = Line::new(Duration::from_secs(1), Duration::from_secs(4));
        line.sent(Action::Measure);
        line.disregard();
        assert_eq!(line.answered(), None);
        assert!(line.is_free(Moment::default()));
    }
}
