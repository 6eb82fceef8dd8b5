//! The HTTP face of the books: permits, on every path, as the reference's plugin answers them.
//!
//! The method is checked here, everything else by the core's [`wire`]. Bodies are read up to
//! [`BODY_LIMIT`] bytes and no further.

use crate::refusal::Refusal;
use crate::shared::Shared;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tracing::{debug, warn};
use windlass_plugin_core::wire;
use windlass_protocol::PluginVersion;
use windlass_protocol::plugin::{BODY_LIMIT, RawRequest};

/// Answers permit requests on every path.
pub fn router(shared: Shared) -> Router {
    Router::new().fallback(permit).with_state(shared)
}

async fn permit(State(shared): State<Shared>, request: Request) -> Response {
    let answer = match read(request).await {
        Ok(request) => decide(&shared, request),
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
async fn read(request: Request) -> Result<RawRequest, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::Method);
    }
    let body = first_bytes(request.into_body()).await?;
    Ok(wire::read(&body, PluginVersion::SPOKEN)?)
}

/// As much of a body as is looked at, [`BODY_LIMIT`], and one byte more if there is one: then it
/// is refused as too long.
///
/// # Errors
/// If the sender went away.
pub async fn first_bytes(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while bytes.len() <= BODY_LIMIT {
        let Some(frame) = body.frame().await else { break };
        let Ok(data) = frame.map_err(|_| Refusal::BrokeOff)?.into_data() else { continue };
        let missing = (BODY_LIMIT + 1).saturating_sub(bytes.len());
        bytes.extend_from_slice(&data[..data.len().min(missing)]);
    }
    Ok(bytes)
}

fn decide(shared: &Shared, request: RawRequest) -> Result<Vec<u8>, Refusal> {
    let permitted = shared.permit(request)?;
    let (vm, asked, granted) = (&permitted.vm, permitted.asked, &permitted.granted);
    shared.metrics().granted(granted);
    let version = permitted.version;
    debug!(%vm, %version, %asked, permit = %granted.permit, "permitted");
    Ok(permitted.encode()?)
}
