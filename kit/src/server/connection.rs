//! One connection, from its first byte to its end.

use super::connections::{LEAVES_WITHIN, Slot};
use super::deadline::Deadline;
use super::limits::{Limits, Refusal};
use super::listen::Who;
use super::service::{HangUp, OpenSince, Service};
use crate::catch_panic::{catch_panic, catch_panic_in};
use axum::response::Response;
use bytes::Bytes;
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
    let since = OpenSince::now();
    let answers = Answers { service, who, since, slot, deadline, limits: limits.clone() };
    let answers = &Arc::new(answers);
    let service = service_fn(|request: Request<Incoming>| {
        // Boxed, because only a connection whose futures can be moved gives its stream back.
        Box::pin(Arc::clone(answers).to(request))
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
    /// One request, from its head to its answer. It is taken apart before it is in the future, which is kept small: each request
    /// has one of its own.
    fn to(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response, HangUp>> {
        self.who.sign(request.extensions_mut());
        self.slot.set_busy();
        self.deadline.set(Instant::now() + self.limits.request_time);
        let (head, body) = request.into_parts();
        async move {
            let answer = match self.read(body).await {
                Ok(body) => {
                    let request = Request::from_parts(head, body);
                    match catch_panic_in(|| self.service.answer(request, self.since)) {
                        Ok(answer) => {
                            let mut answer = pin!(answer);
                            answered(self.deadline.within(catch_panic(answer.as_mut())).await)
                        }
                        Err(why) => answered(Some(Err(why))),
                    }
                }
                Err(refusal) => Err(refusal),
            };
            self.slot.set_idle();
            HangUp::or(answer.unwrap_or_else(|refusal| self.limits.refuse(refusal)))
        }
    }

    /// The body of a request.
    async fn read(&self, body: Incoming) -> Result<Bytes, Refusal> {
        let most = self.limits.body_size;
        if body.size_hint().lower() > most as u64 {
            return Err(Refusal::BodySize);
        }
        let mut body = pin!(Limited::new(body, most).collect());
        match self.deadline.within(body.as_mut()).await {
            Some(Ok(body)) => Ok(body.to_bytes()),
            Some(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::BodySize),
            Some(Err(error)) => {
                debug!(%error, "request body broken off");
                Err(Refusal::BodyBroken)
            }
            None => Err(Refusal::BodyTime),
        }
    }
}

/// What came of asking the service in time; `None`: it took too long.
fn answered(answer: Option<Result<Response, String>>) -> Result<Response, Refusal> {
    match answer {
        Some(Ok(response)) => Ok(response),
        Some(Err(why)) => {
            error!(why, "request handler panicked");
            Err(Refusal::Panic)
        }
        None => Err(Refusal::AnswerTime),
    }
}
