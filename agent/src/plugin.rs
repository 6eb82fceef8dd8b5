//! The permit client: one question to whoever keeps the books, through the wire's codec.
//!
//! On a host the plugin is in the same process and is called in memory; the bytes are the
//! same as over a socket, so there is one code path.

use crate::config::PERMIT_TIME;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use tracing::{debug, warn};
use windlass_agent_core::{Event, Failure};
use windlass_protocol::plugin::{LoadMetrics, PermitRequest, PermitResponse};
use windlass_protocol::version::PluginVersion;
use windlass_protocol::{Peer, Resources, VmInfo};
use windlass_scaling::Sample;

/// An answer on its way: a status and a body, or the reason why there is none.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<(u16, Bytes), String>> + Send + 'a>>;

/// Whoever gives permits.
pub trait Permits: Send + Sync + 'static {
    /// Sends the body of a permit request (POST, any path), and returns status and body of the
    /// answer. The caller gives up after a deadline by dropping the future.
    fn ask(&self, body: Bytes) -> Asked<'_>;
}

/// Asks for a permit. Always ends in time, with exactly one event for the scaler.
pub(crate) async fn ask(
    permits: &dyn Permits,
    info: &VmInfo,
    resources: Resources,
    sample: Option<&Sample>,
) -> Event {
    let slot = info.memory_slot;
    let request = PermitRequest {
        version: PluginVersion::V2_0,
        vm: info.name.clone(),
        resources,
        metrics: sample.and_then(load_metrics),
    };
    let body = match request.encode(slot) {
        Ok(body) => Bytes::from(body),
        Err(error) => {
            warn!(%error, "permit request does not fit the wire");
            return refused(400);
        }
    };
    match tokio::time::timeout(PERMIT_TIME, permits.ask(body)).await {
        Ok(Ok((200, body))) => match PermitResponse::decode(&body, slot) {
            Ok(response) => Event::Permitted(response.permit),
            Err(error) => {
                warn!(%error, "plugin's answer is broken");
                no_answer()
            }
        },
        Ok(Ok((status, body))) => {
            let words = String::from_utf8_lossy(&body).chars().take(200).collect::<String>();
            debug!(status, words, "plugin refused");
            refused(status)
        }
        Ok(Err(why)) => {
            debug!(why, "plugin not reached");
            no_answer()
        }
        Err(_) => no_answer(),
    }
}

fn refused(status: u16) -> Event {
    Event::Failed(Peer::Plugin, Failure::Refused(status))
}

fn no_answer() -> Event {
    Event::Failed(Peer::Plugin, Failure::NoAnswer)
}

/// The reference's two figures; what the guest does not report is not made up.
fn load_metrics(sample: &Sample) -> Option<LoadMetrics> {
    #[expect(clippy::cast_possible_truncation, reason = "the wire has 32-bit floats")]
    Some(LoadMetrics {
        load_1m: sample.loads.one_minute? as f32,
        load_5m: sample.loads.five_minutes? as f32,
    })
}
