//! What is answered: the reference's endpoints as it has them, and our own.
//!
//! The reference's order of checks: unknown path 404, wrong method 405, a body that is not the
//! message 400 (also where there is none), then the request itself; errors are plain text. A
//! handler decodes, calls one function of the core, and encodes.

use super::{BODY, LARGEST};
use crate::metrics;
use crate::shared::Shared;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::{Method, Request, Response, StatusCode, header};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::timeout;
use windlass_informant_core::{Refusal, Registration};
use windlass_protocol::BadBody;
use windlass_protocol::informant::{
    AgentDesc, DOWNSCALE, Empty, Endpoint, HEALTH_CHECK, HealthCheck, REGISTER, ResourceMessage,
    UNREGISTER, UPSCALE,
};

/// A registration is over after this long; a call to the agent has 1.5 s of it.
const REGISTERING: Duration = Duration::from_secs(8);

/// vCPUs are parked and un-parked before the answer, but not for longer than this: the agent
/// waits 2 s.
const FOLLOWING: Duration = Duration::from_secs(1);

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
    Bad(BadBody),
    Refused(Refusal),
}

/// Answers one request.
///
/// # Errors
/// Never.
pub async fn answer(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, kind, body) = route(shared, request).await;
    let count = if status == 200 { &shared.counts.answered } else { &shared.counts.refused };
    count.add();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    Ok(response)
}

async fn route(shared: &Shared, request: Request<Incoming>) -> Answer {
    let path = request.uri().path();
    for endpoint in [REGISTER, HEALTH_CHECK, DOWNSCALE, UPSCALE, UNREGISTER] {
        if endpoint.path == path {
            return message(shared, endpoint, request).await;
        }
    }
    let page = match path {
        "/metrics" => metrics_page,
        "/livez" => livez,
        "/readyz" => readyz,
        _ => return plain(404, "404 page not found"),
    };
    if *request.method() == Method::GET || *request.method() == Method::HEAD {
        page(shared)
    } else {
        wrong_method("GET")
    }
}

/// One of the reference's.
async fn message(shared: &Shared, endpoint: Endpoint, request: Request<Incoming>) -> Answer {
    if request.method().as_str() != endpoint.method {
        return wrong_method(endpoint.method);
    }
    let handled = match read(request.into_body()).await {
        Err(problem) => Err(problem),
        Ok(body) if endpoint == REGISTER => register(shared, &body).await,
        Ok(body) if endpoint == DOWNSCALE => downscale(shared, &body).await,
        Ok(body) if endpoint == UPSCALE => upscale(shared, &body).await,
        Ok(body) if endpoint == UNREGISTER => unregister(shared, &body),
        Ok(body) => health_check(shared, &body),
    };
    match handled {
        Ok(body) => (200, JSON, body),
        Err(problem) => problem.answer(),
    }
}

async fn register(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let desc = AgentDesc::decode(body)?;
    shared.core().register(&desc)?;
    let done = shared.until(REGISTERING, |core, _| match core.registration(desc.agent_id) {
        Registration::Pending => None,
        Registration::Done(answer) => Some(Ok(answer.encode())),
        Registration::Refused(refusal) => Some(Err(refusal.into())),
    });
    done.await.unwrap_or(Err(Problem::Unready))
}

fn health_check(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let HealthCheck(id) = HealthCheck::decode(body)?;
    shared.core().health_check(id)?;
    Ok(Empty.encode())
}

async fn downscale(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let message = ResourceMessage::decode(body)?;
    // Memory may have been added since the last sample: what the VM has is read now.
    shared.sample();
    let result = shared.core().downscale(shared.clock.now(), &message)?;
    follow(shared).await;
    Ok(result.encode())
}

async fn upscale(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let message = ResourceMessage::decode(body)?;
    shared.core().upscale(shared.clock.now(), &message)?;
    follow(shared).await;
    Ok(Empty.encode())
}

fn unregister(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let desc = AgentDesc::decode(body)?;
    let unregistered = shared.core().unregister(&desc)?;
    shared.woken.notify_one();
    Ok(unregistered.encode())
}

/// Waits until the guest has followed, or cannot.
async fn follow(shared: &Shared) {
    shared.until(FOLLOWING, |core, now| core.settled(now).then_some(())).await;
}

fn metrics_page(shared: &Shared) -> Answer {
    (200, PROMETHEUS, metrics::text(shared).into_bytes())
}

fn livez(_: &Shared) -> Answer {
    plain(200, "ok")
}

/// Ready: load is being read.
fn readyz(shared: &Shared) -> Answer {
    if shared.load().averages(shared.clock.now()).is_some() {
        plain(200, "ok")
    } else {
        plain(503, "no sample of load within the last 2s")
    }
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

fn wrong_method(right: &str) -> Answer {
    plain(405, &format!("request method must be {right}"))
}

fn plain(status: u16, text: &str) -> Answer {
    (status, TEXT, format!("{text}\n").into_bytes())
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
            Self::Bad(error) => plain(400, &format!("bad JSON: {error}")),
            Self::Refused(refusal) => plain(refusal.status(), &refusal.to_string()),
        }
    }
}

impl From<BadBody> for Problem {
    fn from(error: BadBody) -> Self {
        Self::Bad(error)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
