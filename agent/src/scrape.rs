//! Reads a guest's metrics: one bounded GET.

use crate::config::METRICS_SIZE;
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;
use windlass_agent_core::{Event, Failure, metrics_text};
use windlass_kit::client::{Ask, Pool};
use windlass_kit::clock::Clock;
use windlass_protocol::Peer;

/// Reads them. Always ends within `limit`, with exactly one event for the scaler.
pub(crate) async fn read(from: Arc<Pool>, clock: Clock, limit: Duration) -> Event {
    // What it says is no older than this, however long it is on its way.
    let asked_at = clock.now();
    let request = Ask::new(Method::GET, "/metrics", "").within(limit).at_most(METRICS_SIZE);
    let failure = match from.ask(request).await {
        Ok(answer) if answer.status == 200 => {
            let text = String::from_utf8_lossy(&answer.body);
            return Event::Measured(metrics_text::parse(&text, asked_at));
        }
        Ok(answer) => {
            debug!(from = %from.to(), status = answer.status, "metrics refused");
            Failure::Refused(answer.status)
        }
        Err(error) => {
            debug!(from = %from.to(), %error, "metrics not read");
            Failure::NoAnswer
        }
    };
    Event::Failed(Peer::Metrics, failure)
}
