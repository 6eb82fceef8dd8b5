//! What is answered: the reference's endpoints as it has them, and our own.
//!
//! The reference's are read and answered by the core's [`wire`], in the reference's order of
//! checks. A handler calls one function of the core, and waits for what it has to.

use super::{BODY, LARGEST};
use crate::memory_cotenant::MemoryCotenant;
use crate::metrics;
use crate::shared::Shared;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::{Method, Request, Response, StatusCode, header};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use windlass_informant_core::wire::{self, Unanswered};
use windlass_protocol::informant::{AgentDesc, Endpoint};

/// A registration is over after this long; a call to the agent has 1.5 s of it.
const REGISTERING: Duration = Duration::from_secs(8);

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An answer: status, type, body.
type Answer = (u16, &'static str, Vec<u8>);

/// A request that was not carried out.
#[derive(Debug)]
enum Problem {
    /// The guest's machine is not prepared for another agent yet.
    Unready,
    Slow,
    TooLarge,
    Cut,
    Unanswered(Unanswered),
}

/// Answers one request; `busy` is set once all of it is there.
pub async fn answer<B: MemoryCotenant>(
    shared: &Shared<B>,
    request: Request<Incoming>,
    busy: &AtomicBool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, kind, body) = route(shared, request, busy).await;
    let count = if status == 200 { &shared.counts.answered } else { &shared.counts.refused };
    count.add();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    Ok(response)
}

async fn route<B: MemoryCotenant>(
    shared: &Shared<B>,
    request: Request<Incoming>,
    busy: &AtomicBool,
) -> Answer {
    let answer = match wire::endpoint(request.method().as_str(), request.uri().path()) {
        Ok(endpoint) => match read(request.into_body()).await {
            Ok(body) => {
                busy.store(true, Ordering::Relaxed);
                message(shared, endpoint, &body).await
            }
            Err(problem) => Err(problem),
        },
        Err(Unanswered::Path) => return page(shared, &request),
        Err(unanswered) => Err(unanswered.into()),
    };
    match answer {
        Ok(answer) => (200, JSON, answer.encode()),
        Err(problem) => problem.answer(),
    }
}

/// One of ours.
fn page<B: MemoryCotenant>(shared: &Shared<B>, request: &Request<Incoming>) -> Answer {
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    match request.uri().path() {
        "/metrics" | "/livez" | "/readyz" if !reads => {
            Problem::from(Unanswered::Method("GET")).answer()
        }
        "/metrics" => (200, PROMETHEUS, metrics::text(shared).into_bytes()),
        "/livez" => plain(200, "ok\n"),
        // Ready: load is being read.
        "/readyz" if shared.load().is_sampled(shared.clock.now()) => plain(200, "ok\n"),
        "/readyz" => plain(503, "no sample of load within the last 2s\n"),
        _ => Problem::from(Unanswered::Path).answer(),
    }
}

/// One of the reference's.
async fn message<B: MemoryCotenant>(
    shared: &Shared<B>,
    endpoint: Endpoint,
    body: &[u8],
) -> Result<wire::Answer, Problem> {
    match wire::Request::decode(endpoint, body)? {
        wire::Request::Register(desc) => register(shared, &desc).await,
        wire::Request::HealthCheck(id) => {
            shared.core().health_check(shared.clock.now(), id)?;
            Ok(wire::Answer::Healthy)
        }
        wire::Request::Downscale(message) => {
            Ok(wire::Answer::Downscaled(B::downscale(shared, &message).await?))
        }
        wire::Request::Upscale(message) => {
            B::upscale(shared, &message)?;
            shared.follow().await;
            Ok(wire::Answer::Upscaled)
        }
        wire::Request::Unregister(desc) => {
            let unregistered = shared.core().unregister(&desc)?;
            shared.woken.notify_one();
            Ok(wire::Answer::Unregistered(unregistered))
        }
    }
}

async fn register<B: MemoryCotenant>(
    shared: &Shared<B>,
    desc: &AgentDesc,
) -> Result<wire::Answer, Problem> {
    shared.core().register(desc)?;
    let done = shared.until(REGISTERING, |core, _| core.registration(desc.agent_id));
    Ok(wire::Answer::Registered(done.await.ok_or(Problem::Unready)??))
}

async fn read(body: Incoming) -> Result<Bytes, Problem> {
    // A body that announces more than is allowed is not waited for.
    if body.size_hint().lower() > LARGEST as u64 {
        return Err(Problem::TooLarge);
    }
    match timeout(BODY, Limited::new(body, LARGEST).collect()).await {
        Err(_) => Err(Problem::Slow),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::TooLarge),
        Ok(Err(_)) => Err(Problem::Cut),
    }
}

fn plain(status: u16, text: &str) -> Answer {
    (status, TEXT, text.as_bytes().to_vec())
}

// === impl Problem ===

impl Problem {
    fn answer(&self) -> Answer {
        match self {
            Self::Unready => {
                let limit = REGISTERING.as_secs();
                plain(503, &format!("registration: the guest was not ready within {limit}s"))
            }
            Self::Slow => plain(408, &format!("body: was not there within {}s", BODY.as_secs())),
            Self::TooLarge => plain(413, &format!("body: is larger than {LARGEST} bytes")),
            Self::Cut => plain(400, "body: ended before its end"),
            Self::Unanswered(why) => (why.status(), TEXT, why.encode()),
        }
    }
}

impl<E: Into<Unanswered>> From<E> for Problem {
    fn from(why: E) -> Self {
        Self::Unanswered(why.into())
    }
}
