//! HTTP/1.1 with every limit set, over TCP and unix sockets.
//!
//! Whoever connects may be slow, greedy, broken or hostile. So there is a limit on
//! connections, on the time and size of a request's head, on the time and size of its body,
//! on how long an answer may take, and on how long a connection may live. A request's body
//! is read here, whole, before the router sees it: handlers get bytes and wait for nobody.
//! Each refusal says in words which limit it was. A panic in a handler is one 500. A request over
//! a unix socket carries its [`Caller`](windlass_protocol::status::Caller) as an extension.

mod connection;
mod counts;
mod listen;

pub use counts::{Counts, Refusal};
pub use listen::{Accept, bind_unix};

use crate::caught::caught;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, error, warn};

/// After an accept that failed for want of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server puts up with.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; one more is told so and closed.
    pub connections: usize,
    /// From the first byte of a request's head to its last; also how long a connection may idle.
    pub head_time: Duration,
    /// Bytes of a request's head.
    pub head_size: usize,
    /// Bytes of a request's body.
    pub body_size: usize,
    /// From a request's head to its answer, its body included.
    pub request_time: Duration,
    /// A connection is asked to end after this, so that one that never reads its answer does.
    pub connection_time: Duration,
    /// Where refusals are counted.
    pub counts: Counts,
}

/// Serves `router` until `stop`, then lets requests under way finish.
///
/// # Errors
/// None while `stop` is not cancelled; a failing accept is logged and tried again.
pub async fn serve<L: Accept>(
    listener: L,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) -> Result<(), io::Error> {
    let limits = Arc::new(limits);
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = room.clone().try_acquire_owned() else {
            limits.counts.refused(Refusal::Crowded);
            L::turn_away(&stream, CROWDED.as_bytes());
            continue;
        };
        let caller = L::caller(&stream);
        let connection =
            connection::run(stream, caller, router.clone(), limits.clone(), stop.clone());
        connections.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    // No longer than one whole request: then what is left is cut by the drop.
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.request_time, all).await.is_err() {
        debug!("connections cut at the end of a server");
    }
    Ok(())
}

/// Whole, as it cannot be made by the server that it speaks for.
const CROWDED: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 22\r\nconnection: close\r\n\r\ntoo many connections\r\n";

/// One request, from its head to its answer.
async fn answer(router: Router, request: Request<Incoming>, limits: &Limits) -> Response {
    let deadline = Instant::now() + limits.request_time;
    let (head, body) = request.into_parts();
    if body.size_hint().lower() > limits.body_size as u64 {
        return limits.refuse(Refusal::BodySize);
    }
    let body = match timeout_at(deadline, Limited::new(body, limits.body_size).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return limits.refuse(Refusal::BodySize);
        }
        Ok(Err(error)) => {
            debug!(%error, "request body broken off");
            return limits.refuse(Refusal::BodyBroken);
        }
        Err(_) => return limits.refuse(Refusal::BodyTime),
    };
    let request = Request::from_parts(head, Body::from(body));
    match timeout_at(deadline, caught(router.oneshot(request))).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(never))) => match never {},
        Ok(Err(panicked)) => {
            error!(why = panicked.0, "request handler panicked");
            limits.refuse(Refusal::Panic)
        }
        Err(_) => limits.refuse(Refusal::AnswerTime),
    }
}

// === impl Limits ===

impl Limits {
    /// For small messages among few peers: 32 connections, 64 KiB, 5 s.
    pub fn small(counts: Counts) -> Self {
        Self {
            connections: 32,
            head_time: Duration::from_secs(5),
            head_size: 16 * 1024,
            body_size: 64 * 1024,
            request_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(60),
            counts,
        }
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        self.counts.refused(refusal);
        let (status, text) = self.words(refusal);
        let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        // What is left of the body is not worth reading; the connection ends with the answer.
        let close = [(header::CONNECTION, "close")];
        match refusal {
            Refusal::Panic | Refusal::AnswerTime => (status, plain, text).into_response(),
            Refusal::Crowded
            | Refusal::HeadTime
            | Refusal::BodySize
            | Refusal::BodyTime
            | Refusal::BodyBroken => (status, plain, close, text).into_response(),
        }
    }

    fn words(&self, refusal: Refusal) -> (StatusCode, String) {
        let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
        match refusal {
            Refusal::Crowded => {
                (StatusCode::SERVICE_UNAVAILABLE, "too many connections\r\n".to_owned())
            }
            Refusal::HeadTime => (
                StatusCode::REQUEST_TIMEOUT,
                format!("the request's head did not arrive within {}\n", seconds(self.head_time)),
            ),
            Refusal::BodySize => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the request's body is larger than {} bytes\n", self.body_size),
            ),
            Refusal::BodyTime => (
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the request's body did not arrive within {}\n",
                    seconds(self.request_time)
                ),
            ),
            Refusal::BodyBroken => {
                (StatusCode::BAD_REQUEST, "the request's body broke off\n".to_owned())
            }
            Refusal::AnswerTime => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no answer within {}\n", seconds(self.request_time)),
            ),
            Refusal::Panic => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal error; the log says which\n".to_owned(),
            ),
        }
    }
}
