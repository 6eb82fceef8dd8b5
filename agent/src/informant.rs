//! The client of a guest's informant: one request per action of the scaler.
//!
//! An answer by status is a refusal: it did not happen. Everything else that is no whole
//! answer, in time and in bounds, leaves that open.

use crate::config::ANSWER_SIZE;
use crate::metrics::reference::Reference;
use http::Method;
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::{debug, warn};
use windlass_agent_core::wire::{self, Said, WireError};
use windlass_agent_core::{Action, Event, Failure, Times};
use windlass_kit::client::{Answer, Ask, Pool};
use windlass_protocol::{InformantVersion, Peer};

/// The informant of one guest.
#[derive(Clone, Debug)]
pub(crate) struct Informant {
    /// Where it listens.
    pub(crate) at: Arc<Pool>,
    /// Where it calls back.
    pub(crate) callback: Option<SocketAddr>,
    /// How long it may take.
    pub(crate) times: Times,
}

// === impl Informant ===

impl Informant {
    /// Asks what this action says. Always ends in time, with exactly one event for the scaler.
    pub(crate) async fn ask(self, action: Action, counts: &Reference) -> Event {
        let answered = self.answer(action, counts).await;
        answered.unwrap_or_else(|failure| Event::Failed(Peer::Informant, failure))
    }

    async fn answer(&self, action: Action, counts: &Reference) -> Result<Event, Failure> {
        let serve_addr = match (action, self.callback) {
            (Action::Register(_) | Action::Unregister(_), Some(callback)) => callback.to_string(),
            // Without an address to be called back at, no session can be.
            (Action::Register(_) | Action::Unregister(_), None) => return Err(Failure::NoAnswer),
            (_, _) => String::new(),
        };
        let offered = InformantVersion::SPOKEN;
        let said = wire::to_informant(action, &serve_addr, offered).zip(self.times.limit(action));
        let (Said { endpoint, body }, limit) = said.ok_or(Failure::NoAnswer)?;
        // The methods of the protocol are constants, and valid.
        let method = Method::from_bytes(endpoint.method.as_bytes()).unwrap_or(Method::POST);
        let request = Ask::new(method, endpoint.path, body).within(limit).at_most(ANSWER_SIZE);
        let answered = self.at.ask(request).await;
        counts.asked_informant(endpoint.path, answered.as_ref().ok().map(|answer| answer.status));
        let answer = answered.map_err(|error| {
            debug!(path = endpoint.path, %error, "informant not reached");
            Failure::NoAnswer
        })?;
        wire::from_informant(action, offered, answer.status, &answer.body).map_err(|error| {
            log(&error, endpoint.path, &answer);
            error.failure()
        })
    }
}

fn log(error: &WireError, path: &str, answer: &Answer) {
    match error {
        WireError::Refused(status) => {
            let words = answer.text();
            debug!(path, status, words, "informant refused");
        }
        WireError::Odd(status) => debug!(path, status, "informant's answer is odd"),
        WireError::Broken(error) => warn!(%error, "informant's answer is broken"),
        WireError::NotOffered { chosen, .. } => {
            warn!(%chosen, "informant chose a version that was not offered");
        }
        WireError::NoMetricsPort => warn!("informant does not say where metrics are read"),
        // The last two are said of a plugin's answers.
        WireError::Unasked | WireError::Version(_) | WireError::Moving => {
            debug!(path, "informant was not asked");
        }
    }
}
