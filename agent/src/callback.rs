//! The call-back server of one VM: what its informant asks this agent.
//!
//! What a request calls for, and what is answered, is the core's [`wire`]; here it waits for
//! the runner. Bodies are read as the reference reads them, whatever their content type. The
//! port says which VM calls; the id in the body says whether it means the session that counts.

use crate::config::SUSPEND_TIME;
use crate::lock::lock;
use crate::metrics::Metrics;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use windlass_agent_core::{Call, CallAnswer, wire};
use windlass_kit::server::{Limits, OpenSince, Service};

/// Calls that wait for the runner. The reference's informant makes one at a time.
const MOST_PENDING: usize = 16;

/// A call that waits for the runner, and where its answer goes. Channels have boxes of it: tokio allocates 32
/// places of a channel at once, and each VM has a channel.
pub(crate) struct PendingCall {
    pub(crate) call: Call,
    pub(crate) answer: oneshot::Sender<CallAnswer>,
}

/// Hands calls to whichever runner serves the VM at present.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Option<mpsc::Sender<Box<PendingCall>>>>>);

/// Status and body of an answer.
type Answer = (u16, Vec<u8>);

/// Every path of one VM's call-back server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) calls: Calls,
    pub(crate) metrics: Metrics,
}

/// What a call-back server puts up with.
pub(crate) fn limits(metrics: &Metrics) -> Limits {
    let limits = Limits::small(metrics.refusals.clone());
    // An informant needs two connections; the rest is for its successor and for people.
    Limits { connections: 8, request_time: SUSPEND_TIME + limits.head_time, ..limits }
}

// === impl Server ===

impl Service for Server {
    async fn answer(&self, request: Request<Bytes>, _: OpenSince) -> Response {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let (status, text) = match wire::called(method, path, request.body()) {
            Ok(call) => self.calls.ask(call).await.map_or_else(|none| none, wire::call_answer),
            Err(uncalled) => (uncalled.status(), uncalled.body()),
        };
        self.metrics.called(path, status);
        let kind = if status == 200 { "application/json" } else { "text/plain; charset=utf-8" };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, [(header::CONTENT_TYPE, kind)], text).into_response()
    }
}

// === impl Calls ===

impl Calls {
    /// A new runner takes the calls from here on.
    pub(crate) fn open(&self) -> mpsc::Receiver<Box<PendingCall>> {
        let (sender, receiver) = mpsc::channel(MOST_PENDING);
        *lock(&self.0) = Some(sender);
        receiver
    }

    /// What the runner answers; `Err` is said if it does not.
    async fn ask(&self, call: Call) -> Result<CallAnswer, Answer> {
        // No runner serves the VM, or too many calls wait for it.
        let unready = || (503, b"the agent is not ready for calls".to_vec());
        let runner = lock(&self.0).clone();
        let (answer, answered) = oneshot::channel();
        runner
            .ok_or_else(unready)?
            .try_send(Box::new(PendingCall { call, answer }))
            .map_err(|_| unready())?;
        match timeout(SUSPEND_TIME, answered).await {
            Ok(answer) => answer.map_err(|_| unready()),
            Err(_) => {
                Err((500, b"suspended, but requests of this agent are still under way".to_vec()))
            }
        }
    }
}
