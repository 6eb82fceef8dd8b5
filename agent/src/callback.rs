//! The call-back server of one VM: what its informant asks this agent.
//!
//! Order of checks, status codes and texts are the reference's: an unknown path is 404, a
//! wrong method 405, a body that is not understood 400, and only then does the scaler decide.
//! Bodies are read as the reference reads them, whatever their content type. The port says
//! which VM calls; the id in the body says whether it means the session that counts.

use crate::config::SUSPEND_TIME;
use crate::metrics::{Called, Metrics};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{Method, StatusCode, Uri, header};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use windlass_agent_core::{Call, CallAnswer};
use windlass_kit::server::Limits;
use windlass_protocol::BadBody;
use windlass_protocol::informant::{
    self, Empty, Endpoint, Expected, ID, Identified, MoreResources, RESUME, SUSPEND, TRY_UPSCALE,
};

/// Calls that wait for the runner. The reference's informant makes one at a time.
const WAITING: usize = 16;

/// A call, and where its answer goes.
pub(crate) struct Waiting {
    pub(crate) call: Call,
    pub(crate) answer: oneshot::Sender<CallAnswer>,
}

/// Hands calls to whichever runner serves the VM at present.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Option<mpsc::Sender<Waiting>>>>);

/// Why the runner did not answer.
enum Silent {
    /// There is no runner, or too many calls wait for it.
    Nobody,
    /// Its last requests are still under way.
    Unsettled,
}

#[derive(Clone)]
struct Server {
    calls: Calls,
    metrics: Metrics,
}

/// Every path of one VM's call-back server.
pub(crate) fn router(calls: Calls, metrics: Metrics) -> Router {
    Router::new().fallback(called).with_state(Server { calls, metrics })
}

/// What a call-back server puts up with.
pub(crate) fn limits(metrics: &Metrics) -> Limits {
    let limits = Limits::small(metrics.refusals.clone());
    // An informant needs two connections; the rest is for its successor and for people.
    Limits { connections: 8, request_time: SUSPEND_TIME + limits.head_time, ..limits }
}

async fn called(State(server): State<Server>, method: Method, uri: Uri, body: Bytes) -> Response {
    let (endpoint, which) = match uri.path() {
        path if path == ID.path => (Some(ID), Called::Id),
        path if path == RESUME.path => (Some(RESUME), Called::Resume),
        path if path == SUSPEND.path => (Some(SUSPEND), Called::Suspend),
        path if path == TRY_UPSCALE.path => (Some(TRY_UPSCALE), Called::TryUpscale),
        _ => (None, Called::Unknown),
    };
    let (status, text) = server.answer(endpoint, which, &method, &body).await;
    server.metrics.called(which, status.as_u16());
    let kind =
        if status == StatusCode::OK { "application/json" } else { "text/plain; charset=utf-8" };
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}

// === impl Server ===

impl Server {
    async fn answer(
        &self,
        endpoint: Option<Endpoint>,
        which: Called,
        method: &Method,
        body: &[u8],
    ) -> (StatusCode, Vec<u8>) {
        let Some(endpoint) = endpoint else {
            return (StatusCode::NOT_FOUND, b"404 page not found\n".to_vec());
        };
        if method.as_str() != endpoint.method {
            let text = format!("request method must be {}", endpoint.method);
            return (StatusCode::METHOD_NOT_ALLOWED, text.into());
        }
        let call = match decode(which, body) {
            Ok(call) => call,
            Err(error) => return (StatusCode::BAD_REQUEST, format!("bad JSON: {error}").into()),
        };
        match self.calls.ask(call).await {
            Ok(CallAnswer::Ours(id, sequence)) => {
                (StatusCode::OK, Identified { id, sequence }.encode())
            }
            Ok(CallAnswer::Unknown) => {
                (StatusCode::NOT_FOUND, b"no session of this agent has that id".to_vec())
            }
            Ok(CallAnswer::NotNow) => {
                (StatusCode::BAD_REQUEST, b"the session is not in a state for this".to_vec())
            }
            Err(Silent::Nobody) => {
                (StatusCode::SERVICE_UNAVAILABLE, b"the agent is not ready for calls".to_vec())
            }
            Err(Silent::Unsettled) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                b"suspended, but requests of this agent are still under way".to_vec(),
            ),
        }
    }
}

fn decode(which: Called, body: &[u8]) -> Result<Call, BadBody> {
    Ok(match which {
        Called::Id | Called::Unknown => {
            let Empty = Empty::decode(body)?;
            Call::Id
        }
        Called::Resume => Call::Resume(Expected::decode(body)?.0),
        Called::Suspend => Call::Suspend(Expected::decode(body)?.0),
        Called::TryUpscale => {
            let informant::MoreResources { expected, cpu, memory } = MoreResources::decode(body)?;
            Call::MoreResources { expected, cpu, memory }
        }
    })
}

// === impl Calls ===

impl Calls {
    /// A new runner takes the calls from here on.
    pub(crate) fn open(&self) -> mpsc::Receiver<Waiting> {
        let (sender, receiver) = mpsc::channel(WAITING);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    async fn ask(&self, call: Call) -> Result<CallAnswer, Silent> {
        let runner = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (answer, answered) = oneshot::channel();
        let runner = runner.ok_or(Silent::Nobody)?;
        runner.try_send(Waiting { call, answer }).map_err(|_| Silent::Nobody)?;
        match timeout(SUSPEND_TIME, answered).await {
            Ok(answer) => answer.map_err(|_| Silent::Nobody),
            Err(_) => Err(Silent::Unsettled),
        }
    }
}
