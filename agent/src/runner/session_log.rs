//! What the log says of the session with a VM's informant: once that it is lost, and why; once that there is one again.
//!
//! Without a session the VM keeps its memory, and does not grow. An informant that refuses what it has just opened loses a session every few
//! seconds: a session that does not last is not one that is back.

use crate::errors;
use std::time::Duration;
use tracing::info;
use windlass_agent_core::Event;
use windlass_protocol::{Moment, Peer};

/// A session that stands for so long has outlived its first checks.
const LASTS: Duration = Duration::from_secs(10);

/// Whether the informant has this agent, and what was said of that.
#[derive(Debug, Default)]
pub(super) struct SessionLog {
    /// Since when a session stands.
    since: Option<Moment>,
    /// When the session was lost that was said to be.
    lost_at: Option<Moment>,
}

/// What a person is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Lost,
    /// After so long without one.
    Back(Duration),
}

// === impl SessionLog ===

impl SessionLog {
    /// Says what is news. `why`: what ended the session, if it has just ended.
    pub(super) fn look(&mut self, now: Moment, stands: bool, why: Option<String>) {
        match self.news(now, stands) {
            Some(Word::Lost) => {
                let why = why.unwrap_or_else(|| "it is over".to_owned());
                info!(why, "session with the informant lost; another is asked for");
            }
            Some(Word::Back(after)) => {
                info!(after_s = after.as_secs(), "session with the informant again");
            }
            None => {}
        }
    }

    /// The agent ended the session, and asks for no other: that is not news.
    pub(super) fn left(&mut self) {
        *self = Self::default();
    }

    fn news(&mut self, now: Moment, stands: bool) -> Option<Word> {
        match (self.since, stands) {
            (None, false) => None,
            (None, true) => {
                self.since = Some(now);
                None
            }
            (Some(_), false) => {
                self.since = None;
                let is_news = self.lost_at.is_none();
                self.lost_at.get_or_insert(now);
                is_news.then_some(Word::Lost)
            }
            (Some(since), true) if now.since(since) < LASTS => None,
            (Some(since), true) => self.lost_at.take().map(|lost| Word::Back(since.since(lost))),
        }
    }
}

/// What ended a session, if this did.
pub(super) fn why(event: &Event) -> Option<String> {
    if let Event::Failed(Peer::Informant, failure) = event {
        return Some(errors::words(failure));
    }
    (*event == Event::Reset).then(|| "the guest restarted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_lost_once_and_back_once_another_lasts() {
        let mut log = SessionLog::default();
        let mut at = |second: u64, stands| log.news(Moment::from_millis(second * 1_000), stands);
        assert_eq!((at(1, false), at(2, true), at(100, true)), (None, None, None), "the first");
        assert_eq!((at(101, false), at(102, false)), (Some(Word::Lost), None));
        assert_eq!((at(131, true), at(140, true)), (None, None));
        assert_eq!((at(141, true), at(142, true)), (Some(Word::Back(seconds(30))), None));
        // It is opened and refused again and again.
        assert_eq!(at(150, false), Some(Word::Lost));
        for second in (151..200).step_by(6) {
            assert_eq!((at(second, true), at(second + 5, false)), (None, None), "{second}");
        }
        assert_eq!((at(210, true), at(220, true)), (None, Some(Word::Back(seconds(60)))));
    }

    #[test]
    fn a_session_that_the_agent_left_is_not_lost() {
        let mut log = SessionLog::default();
        let at = |second: u64| Moment::from_millis(second * 1_000);
        assert_eq!(log.news(at(1), true), None);
        log.left();
        assert_eq!((log.news(at(2), false), log.news(at(90), true)), (None, None));
        assert_eq!(log.news(at(91), false), Some(Word::Lost));
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }
}
