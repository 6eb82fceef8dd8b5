//! What became of the last request to each peer of a VM, and what is said of one that is silent.

use crate::outage::{Outage, Word};
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

// === impl Errors ===

impl Errors {
    /// Takes in an answer, or that there was none. The hypervisor's driver promises an answer within
    /// `answers_within`.
    pub(crate) fn heard(&mut self, now: Moment, event: &Event, answers_within: Duration) {
        let answered = !matches!(event, Event::Failed(_, Failure::NoAnswer));
        let (peer, error) = if let Event::Failed(peer, failure) = event {
            (Some(*peer), Some(words(failure)))
        } else {
            (event.peer(), None)
        };
        match peer {
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

fn say(word: Option<Word>, silent: &'static str, back: &'static str) {
    match word {
        Some(Word::Silent(since)) => warn!(for_s = since.as_secs(), "{silent}"),
        Some(Word::Back) => info!("{back}"),
        None => {}
    }
}

fn words(failure: &Failure) -> String {
    match failure {
        Failure::NoAnswer => "no answer, or none that is understood".to_owned(),
        Failure::Refused(status) => format!("refused with status {status}"),
        Failure::Version => "refused by version".to_owned(),
        Failure::Moving => "refused: the VM is about to be moved".to_owned(),
    }
}
