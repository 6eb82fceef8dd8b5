//! The client of a guest's informant: one request per action of the scaler.
//!
//! An answer by status is a refusal: it did not happen. Everything else that is no whole
//! answer, in time and in bounds, leaves that open.

use crate::config::ANSWER_SIZE;
use crate::metrics::reference::Reference;
use http::Method;
use std::net::SocketAddr;
use tracing::{debug, warn};
use windlass_agent_core::wire::{self, Said, WireError};
use windlass_agent_core::{Action, Event, Failure, Times};
use windlass_kit::client::{Answer, Ask, Pool};
use windlass_protocol::InformantVersion;

/// Asks what this action says of the informant that listens `at` there, and calls back at `callback`.
/// Always ends in time, with the one event for the scaler or the failure that it is to hear of.
pub(crate) async fn ask(
    at: &Pool,
    action: Action,
    callback: Option<SocketAddr>,
    times: Times,
    counts: &Reference,
) -> Result<Event, Failure> {
    let serve_addr = match (action, callback) {
        (Action::Register(_) | Action::Unregister(_), Some(callback)) => callback.to_string(),
        // Without an address to be called back at, no session can be.
        (Action::Register(_) | Action::Unregister(_), None) => return Err(Failure::NoAnswer),
        (_, _) => String::new(),
    };
    let offered = InformantVersion::SPOKEN;
    let said = wire::to_informant(action, &serve_addr, offered).zip(times.limit(action));
    let (Said { endpoint, body }, limit) = said.ok_or(Failure::NoAnswer)?;
    // The methods of the protocol are constants, and valid.
    let method = Method::from_bytes(endpoint.method.as_bytes()).unwrap_or(Method::POST);
    let request = Ask::new(method, endpoint.path, body).within(limit).at_most(ANSWER_SIZE);
    let answered = at.ask(request).await;
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
