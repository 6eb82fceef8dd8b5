//! The requests in flight for one VM: at most one to each peer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use windlass_agent_core::Event;
use windlass_protocol::Peer;

/// A request under way; it ends in time, with exactly one event.
type Request = Pin<Box<dyn Future<Output = Event> + Send>>;

/// The requests under way. Dropping them hangs up.
#[derive(Default)]
pub(super) struct InFlight {
    plugin: Option<Request>,
    informant: Option<Request>,
    metrics: Option<Request>,
}

// === impl InFlight ===

impl InFlight {
    /// Starts a request. The scaler never has two for one peer; a second would hang up the
    /// first.
    pub(super) fn start(
        &mut self,
        peer: Peer,
        request: impl Future<Output = Event> + Send + 'static,
    ) {
        let request: Option<Request> = Some(Box::pin(request));
        match peer {
            Peer::Plugin => self.plugin = request,
            Peer::Informant => self.informant = request,
            Peer::Metrics => self.metrics = request,
            // The hypervisor has a line of its own, because it outlives the plan.
            Peer::Hypervisor => {}
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        for line in [&mut self.plugin, &mut self.informant, &mut self.metrics] {
            if let Some(request) = line
                && let Poll::Ready(event) = request.as_mut().poll(cx)
            {
                *line = None;
                return Poll::Ready(event);
            }
        }
        Poll::Pending
    }
}
