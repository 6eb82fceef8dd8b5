//! The permit client: one question to whoever keeps the books, through the wire's codec.
//!
//! On a host the plugin is in the same process and is called in memory; the bytes are the
//! same as over a socket, so there is one code path.

use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tracing::{debug, warn};
use windlass_agent_core::wire::{self, Unheard};
use windlass_agent_core::{Asking, Event, Failure};
use windlass_protocol::{Peer, VmInfo};
use windlass_scaling::Sample;

/// An answer on its way: a status and a body, or the reason why there is none.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<(u16, Bytes), String>> + Send + 'a>>;

/// Whoever gives permits.
pub trait Permits: Send + Sync + 'static {
    /// Sends the body of a permit request (POST, any path), and returns status and body of the
    /// answer. The caller gives up after a deadline by dropping the future.
    fn ask(&self, body: Bytes) -> Asked<'_>;
}

/// Asks for a permit. Always ends within `limit`, with exactly one event for the scaler.
pub(crate) async fn ask(
    permits: &dyn Permits,
    info: &VmInfo,
    asking: &Asking,
    sample: Option<&Sample>,
    limit: Duration,
) -> Event {
    let body = match wire::to_plugin(info, asking, sample) {
        Ok(body) => Bytes::from(body),
        Err(error) => {
            warn!(%error, "permit request does not fit the wire");
            return failed(wire::UNSAID);
        }
    };
    match tokio::time::timeout(limit, permits.ask(body)).await {
        Ok(Ok((status, body))) => {
            wire::from_plugin(info, asking, status, &body).unwrap_or_else(|unheard| {
                log(&unheard, &body);
                failed(unheard.failure())
            })
        }
        Ok(Err(why)) => {
            debug!(why, "plugin not reached");
            failed(Failure::NoAnswer)
        }
        Err(_) => failed(Failure::NoAnswer),
    }
}

fn log(unheard: &Unheard, body: &[u8]) {
    match unheard {
        Unheard::Refused(status) => {
            let words = String::from_utf8_lossy(body).chars().take(200).collect::<String>();
            debug!(status, words, "plugin refused");
        }
        Unheard::Version(words) => {
            debug!(words, "plugin does not take the version that was stated");
        }
        Unheard::Moving => debug!("plugin refused: the vm is about to be moved"),
        Unheard::Broken(_)
        | Unheard::Odd(_)
        | Unheard::NotOffered { .. }
        | Unheard::NoMetricsPort
        | Unheard::Unasked => warn!(error = %unheard, "plugin's answer is broken"),
    }
}

fn failed(failure: Failure) -> Event {
    Event::Failed(Peer::Plugin, failure)
}
