//! One connection, from its first byte to its end.

use super::counts::Refusal;
use super::crowd::{LEAVES_WITHIN, Seat};
use super::limits::Limits;
use crate::caught::caught;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, error};
use windlass_protocol::status::Caller;

/// The most headers of one request.
const MAX_HEADERS: usize = 64;

/// hyper asks for no less than this.
const MIN_BUFFER: usize = 8192;

/// Serves requests until the peer ends, or a limit or `stop` does.
pub(super) async fn run<S>(
    stream: S,
    caller: Option<Caller>,
    seat: Seat,
    router: Router,
    limits: Arc<Limits>,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let seat = &Arc::new(seat);
    let service = service_fn(|mut request: Request<Incoming>| {
        if let Some(caller) = caller {
            request.extensions_mut().insert(caller);
        }
        let (router, limits, seat) = (router.clone(), limits.clone(), Arc::clone(seat));
        // Boxed, because only a connection whose futures can be moved gives its stream back.
        Box::pin(async move {
            seat.works();
            let answer = answer(router, request, &limits).await;
            seat.rests();
            Ok::<_, Infallible>(answer)
        })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(MAX_HEADERS)
        .max_buf_size(limits.head_size.max(MIN_BUFFER))
        .serve_connection(TokioIo::new(stream), service);
    let ended = {
        let mut whole = pin!(poll_fn(|cx| connection.poll_without_shutdown(cx)));
        tokio::select! {
            ended = &mut whole => Ok(ended),
            () = stop.cancelled() => Err(limits.request_time),
            () = seat.told_to_leave() => Err(LEAVES_WITHIN),
            () = tokio::time::sleep(limits.connection_time) => Err(limits.request_time),
        }
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(grace) => {
            // The request under way gets its answer, and one that is not read is cut.
            let mut last = pin!(connection);
            last.as_mut().graceful_shutdown();
            drop(timeout(grace, last).await);
            return;
        }
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    match ended {
        Ok(()) => {}
        // Nobody waits for an answer on a connection that was only idle.
        Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
            limits.counts.refused(Refusal::HeadTime);
            let (_, text) = limits.words(Refusal::HeadTime);
            let refusal = format!(
                "HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            );
            drop(timeout(limits.head_time, stream.write_all(refusal.as_bytes())).await);
        }
        Err(error) => debug!(%error, "connection ended"),
    }
    drop(timeout(limits.head_time, stream.shutdown()).await);
}

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
