//! One connection, from its first byte to its end.

use super::connections::{LEAVES_WITHIN, Slot};
use super::deadline::Deadline;
use super::limits::{Limits, Refusal};
use super::listen::Who;
use super::service::{HangUp, OpenSince, Service};
use crate::catch_panic::catch_panic;
use axum::response::Response;
use http::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

/// The most headers of one request.
const MAX_HEADERS: usize = 64;

/// hyper asks for no less than this.
const MIN_BUFFER: usize = 8192;

/// What answers the requests of one connection.
struct Answers<V> {
    service: V,
    who: Who,
    since: OpenSince,
    slot: Slot,
    deadline: Deadline,
    limits: Arc<Limits>,
}

/// Serves requests until the peer ends, or a limit or `stop` does.
pub(super) async fn run<S, V: Service>(
    stream: S,
    who: Who,
    slot: Slot,
    service: V,
    limits: Arc<Limits>,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let deadline = Deadline::new();
    let since = OpenSince(std::time::Instant::now());
    let answers = Answers { service, who, since, slot, deadline, limits: limits.clone() };
    let answers = &Arc::new(answers);
    let service = service_fn(|request: Request<Incoming>| {
        let answers = Arc::clone(answers);
        // Boxed, because only a connection whose futures can be moved gives its stream back.
        Box::pin(async move { HangUp::or(answers.to(request).await) })
    });
    let mut connection = http1::Builder::new()
        .timer(answers.deadline.clone())
        .header_read_timeout(limits.head_time)
        .max_headers(MAX_HEADERS)
        .max_buf_size(limits.head_size.max(MIN_BUFFER))
        // Answers are small: to copy one behind its head costs less than to write both at once.
        .writev(false)
        .serve_connection(TokioIo::new(stream), service);
    // What is stated between two looks does not end before the second.
    let between = limits.head_time.min(limits.request_time);
    let mut look = pin!(sleep(between));
    let (mut end, mut leaves) = (Instant::now() + limits.connection_time, false);
    let ended = loop {
        let grace = tokio::select! {
            biased;
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
            () = answers.slot.asked_to_leave(), if !leaves => match stop.is_cancelled() {
                true => limits.request_time,
                false => LEAVES_WITHIN,
            },
            () = &mut look => {
                let now = Instant::now();
                if now < end {
                    let next = answers.deadline.look(now).unwrap_or(now + between);
                    look.as_mut().reset(next.min(now + between).min(end));
                    continue;
                }
                if leaves {
                    // An answer that is not read is cut.
                    return;
                }
                limits.request_time
            }
        };
        // The request under way gets its answer.
        (leaves, end) = (true, Instant::now() + grace);
        look.as_mut().reset(Instant::now());
        Pin::new(&mut connection).graceful_shutdown();
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    match ended {
        Ok(()) => {}
        // The client of a connection that was only idle waits for no answer.
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

// === impl Answers ===

impl<V: Service> Answers<V> {
    async fn to(&self, mut request: Request<Incoming>) -> Response {
        self.who.sign(request.extensions_mut());
        request.extensions_mut().insert(self.since);
        self.slot.set_busy();
        self.deadline.set(Instant::now() + self.limits.request_time);
        let answer = match self.answer(request).await {
            Ok(response) => response,
            Err(refusal) => self.limits.refuse(refusal),
        };
        self.slot.set_idle();
        answer
    }

    /// One request, from its head to its answer.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response, Refusal> {
        let (head, body) = request.into_parts();
        let most = self.limits.body_size;
        if body.size_hint().lower() > most as u64 {
            return Err(Refusal::BodySize);
        }
        let body = match self.deadline.within(Limited::new(body, most).collect()).await {
            Some(Ok(body)) => body.to_bytes(),
            Some(Err(error)) if error.is::<LengthLimitError>() => return Err(Refusal::BodySize),
            Some(Err(error)) => {
                debug!(%error, "request body broken off");
                return Err(Refusal::BodyBroken);
            }
            None => return Err(Refusal::BodyTime),
        };
        let request = Request::from_parts(head, body);
        match self.deadline.within(catch_panic(self.service.answer(request))).await {
            Some(Ok(response)) => Ok(response),
            Some(Err(why)) => {
                error!(why, "request handler panicked");
                Err(Refusal::Panic)
            }
            None => Err(Refusal::AnswerTime),
        }
    }
}
