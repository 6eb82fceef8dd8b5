//! The HTTP face of the books: permits, on every path, as the reference's plugin answers them.
//!
//! The order of the checks is the reference's: method, body, version, VM. Errors are plain
//! text that begins with the reference's words and goes on to name the field. Bodies are read
//! up to [`BODY_LIMIT`] bytes and no further. What is decided is decided by `plugin_core`; the
//! one decision that belongs to HTTP, which status a refusal gets, is in `Refusal::status`.

use crate::shared::{Answer, Shared};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use thiserror::Error;
use tracing::{debug, warn};
use windlass_plugin_core::BooksError;
use windlass_protocol::plugin::{BODY_LIMIT, OverRange, PermitResponse, SlotRequest};
use windlass_protocol::{BadBody, PluginVersion, Resources, Versions};

/// The most slots that the wire counts.
const MOST_SLOTS: u64 = u16::MAX as u64;

/// Answers permit requests on every path.
pub fn router(shared: Shared) -> Router {
    Router::new().fallback(permit).with_state(shared)
}

/// Why a request is refused.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    #[error("must be POST")]
    Method,
    #[error("bad JSON: body: the request broke off before its end")]
    BrokeOff,
    #[error("bad JSON: {0}")]
    Body(BadBody),
    #[error("bad JSON: body: longer than 1024 bytes, of which no more are read ({0})")]
    TooLong(BadBody),
    #[error("Invalid protocol version {0}: protoVersion is 0 or missing")]
    NoVersion(PluginVersion),
    #[error("Protocol version mismatch: Need {} but got {got}", PluginVersion::SPOKEN)]
    Version { got: Versions<PluginVersion> },
    #[error("pod not found: {0}")]
    UnknownVm(BadBody),
    #[error("cannot say it in this version: {0}")]
    OverRange(#[from] OverRange),
}

async fn permit(State(shared): State<Shared>, request: Request) -> Response {
    let answer = match read(request).await {
        Ok(request) => decide(&shared, &request),
        Err(refusal) => Err(refusal),
    };
    match answer {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(refusal) => {
            shared.metrics().refused(&refusal);
            warn!(%refusal, "permit request refused");
            refusal.into_response()
        }
    }
}

/// A request that says who asks for what, in a version that is spoken.
async fn read(request: Request) -> Result<SlotRequest, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::Method);
    }
    let body = first_bytes(request.into_body()).await?;
    let read = SlotRequest::decode(&body[..body.len().min(BODY_LIMIT)]);
    let request = read.map_err(|bad| {
        if body.len() > BODY_LIMIT { Refusal::TooLong(bad) } else { Refusal::Body(bad) }
    })?;
    if !request.version.is_valid() {
        return Err(Refusal::NoVersion(request.version));
    }
    let version = Versions::only(request.version);
    match PluginVersion::SPOKEN.latest_shared(version) {
        Some(_) => Ok(request),
        None => Err(Refusal::Version { got: version }),
    }
}

/// As much of a body as is looked at, and one byte more if there is one.
async fn first_bytes(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while bytes.len() <= BODY_LIMIT {
        let Some(frame) = body.frame().await else { break };
        let Ok(data) = frame.map_err(|_| Refusal::BrokeOff)?.into_data() else { continue };
        let missing = (BODY_LIMIT + 1).saturating_sub(bytes.len());
        bytes.extend_from_slice(&data[..data.len().min(missing)]);
    }
    Ok(bytes)
}

fn decide(shared: &Shared, request: &SlotRequest) -> Result<Vec<u8>, Refusal> {
    let Answer { asked, granted, unit, slot } = shared.permit(request)?;
    shared.metrics().granted(&granted);
    debug!(vm = %request.vm, %asked, permit = %granted.permit, "permitted");
    // Only told, not meant: a unit that this wire cannot say is no reason to refuse.
    let unit = Resources { mem: unit.mem.min(slot.saturating_mul(MOST_SLOTS)), ..unit };
    Ok(PermitResponse { permit: granted.permit, migrate: false, unit }.encode(slot)?)
}

// === impl Refusal ===

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Method
            | Self::BrokeOff
            | Self::Body(_)
            | Self::TooLong(_)
            | Self::NoVersion(_)
            | Self::Version { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownVm(_) => StatusCode::NOT_FOUND,
            Self::OverRange(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<BooksError> for Refusal {
    fn from(error: BooksError) -> Self {
        match error {
            BooksError::UnknownVm(vm) => {
                Self::UnknownVm(BadBody::field("pod", vm, "a VM in the books of this node"))
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = [(header::CONTENT_TYPE, "text/plain")];
        (self.status(), text, self.to_string()).into_response()
    }
}
