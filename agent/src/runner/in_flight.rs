//! The requests in flight for one VM: at most one to each peer.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use windlass_agent_core::Event;
use windlass_protocol::Peer;

/// A request under way; it ends in time, with exactly one event.
type Request = Pin<Box<dyn Future<Output = Event> + Send>>;

/// The requests under way, by peer. Dropping them hangs up.
#[derive(Default)]
pub(super) struct InFlight(BTreeMap<Peer, Request>);

// === impl InFlight ===

impl InFlight {
    /// Starts a request. The scaler never has two for one peer; a second would hang up the
    /// first. The hypervisor has a line of its own, because it outlives the plan.
    pub(super) fn start(
        &mut self,
        peer: Peer,
        request: impl Future<Output = Event> + Send + 'static,
    ) {
        self.0.insert(peer, Box::pin(request));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        for (peer, request) in &mut self.0 {
            if let Poll::Ready(event) = request.as_mut().poll(cx) {
                let peer = *peer;
                self.0.remove(&peer);
                return Poll::Ready(event);
            }
        }
        Poll::Pending
    }
}
