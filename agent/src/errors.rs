//! What became of the last request to each peer of a VM. A peer that stops answering: the log says so once,
//! and once more when it answers again.

use std::time::Duration;
use tracing::{info, warn};
use windlass_agent_core::{Event, Failure};
use windlass_protocol::{Moment, Peer};

/// The figures of a guest are there once it has booted.
const BOOTED: Duration = Duration::from_secs(60);

/// What became of the last request to a peer, if it failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    pub(crate) plugin: Option<String>,
    pub(crate) informant: Option<String>,
    hypervisor: Outage,
    metrics: Outage,
}

/// Whether a peer answers, and whether a person was told that it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outage {
    since: Option<Moment>,
    is_told: bool,
}

/// What a person is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It has not answered for so long.
    Silent(Duration),
    /// It answers again.
    Back,
}

// === impl Errors ===

impl Errors {
    /// Takes in an answer, or that there was none. The hypervisor's driver promises an answer within
    /// `answers_within`.
    pub(crate) fn heard(&mut self, now: Moment, event: &Event, answers_within: Duration) {
        let answered = !matches!(event, Event::Failed(_, Failure::NoAnswer));
        let error = if let Event::Failed(_, failure) = event { Some(words(failure)) } else { None };
        match event.peer() {
            Some(Peer::Plugin) => self.plugin = error,
            Some(Peer::Informant) => self.informant = error,
            Some(Peer::Hypervisor) => say(
                self.hypervisor.heard(now, answered, answers_within),
                "hypervisor not answering; it is asked again",
                "hypervisor answers again",
            ),
            Some(Peer::Metrics) => say(
                self.metrics.heard(now, answered, BOOTED),
                "no metrics from the guest; they are asked for again",
                "metrics from the guest again",
            ),
            None => {}
        }
    }
}

// === impl Outage ===

impl Outage {
    /// Takes in that the peer answered, or did not. A silence is reported once it has lasted for `after`:
    /// a single lost answer is no outage.
    pub(crate) fn heard(&mut self, now: Moment, answered: bool, after: Duration) -> Option<Word> {
        if answered {
            let was_told = std::mem::take(self).is_told;
            return was_told.then_some(Word::Back);
        }
        let silent = now.since(*self.since.get_or_insert(now));
        if self.is_told || silent < after {
            return None;
        }
        self.is_told = true;
        Some(Word::Silent(silent))
    }
}

fn say(word: Option<Word>, silent: &'static str, back: &'static str) {
    match word {
        Some(Word::Silent(since)) => warn!(for_s = since.as_secs(), "{silent}"),
        Some(Word::Back) => info!("{back}"),
        None => {}
    }
}

pub(crate) fn words(failure: &Failure) -> String {
    match failure {
        Failure::NoAnswer => "no answer, or none that is understood".to_owned(),
        Failure::Refused(status) => format!("refused with status {status}"),
        Failure::Version => "refused by version".to_owned(),
        Failure::Moving => "refused: the VM is about to be moved".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_told_once_when_it_lasts_and_so_is_its_end() {
        const AFTER: Duration = Duration::from_secs(5);
        let mut outage = Outage::default();
        let mut at = |seconds: u64, answered| {
            outage.heard(Moment::from_millis(seconds * 1_000), answered, AFTER)
        };
        assert_eq!((at(1, true), at(2, false), at(3, true)), (None, None, None), "a lost answer");
        assert_eq!((at(10, false), at(14, false)), (None, None));
        assert_eq!(at(15, false), Some(Word::Silent(AFTER)));
        assert_eq!((at(16, false), at(60, false)), (None, None), "that was said");
        assert_eq!((at(61, true), at(62, true)), (Some(Word::Back), None));
        assert_eq!((at(63, false), at(68, false)), (None, Some(Word::Silent(AFTER))), "a new one");
    }
}
