//! Permits over HTTP, on every path, as the reference's plugin answers them.
//!
//! The method is checked here, everything else by the core's [`wire`], which parses a body once.
//! Bodies are read up to [`BODY_LIMIT`] bytes and no further. A listener asks an [`Endpoint`]; the
//! [`router`] gives the same answers without a socket.

use crate::refusal::Refusal;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{self, Method, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tracing::warn;
use windlass_kit::server::Service;
use windlass_plugin_core::wire;
use windlass_protocol::PluginVersion;
use windlass_protocol::plugin::{BODY_LIMIT, RawRequest};

/// What answers permit requests: the books of one node, or those of many.
pub trait Permits: Clone + Send + Sync + 'static {
    /// The body of the answer to a request that was read, or was refused while it was.
    ///
    /// # Errors
    /// Why it is refused.
    fn answer(&self, request: Result<RawRequest, Refusal>) -> Result<Vec<u8>, Refusal>;
}

/// Answers permit requests on every path of a listener.
#[derive(Clone, Debug)]
pub struct Endpoint<P>(pub P);

/// Answers permit requests on every path.
pub fn router<P: Permits>(permits: P) -> Router {
    Router::new().fallback(permit::<P>).with_state(permits)
}

// === impl Endpoint ===

impl<P: Permits> Service for Endpoint<P> {
    async fn answer(&self, request: http::Request<Bytes>) -> Response {
        answer(&self.0, request.method(), Ok(request.body()))
    }
}

async fn permit<P: Permits>(State(permits): State<P>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = first_bytes(body).await;
    answer(&permits, &head.method, body.as_deref().map_err(|_| Refusal::BrokeOff))
}

fn answer(permits: &impl Permits, method: &Method, body: Result<&[u8], Refusal>) -> Response {
    match permits.answer(read(method, body)) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(refusal) => {
            warn!(%refusal, "permit request refused");
            refusal.into_response()
        }
    }
}

/// A request that says which VM asks for what, in a version that is spoken.
fn read(method: &Method, body: Result<&[u8], Refusal>) -> Result<RawRequest, Refusal> {
    if method != Method::POST {
        return Err(Refusal::Method);
    }
    Ok(wire::read(body?, PluginVersion::SPOKEN)?)
}

/// As much of a body as is looked at, [`BODY_LIMIT`], and one byte more if there is one: then it
/// is refused as too long.
async fn first_bytes(mut body: Body) -> Result<Vec<u8>, axum::Error> {
    let mut bytes = Vec::new();
    while bytes.len() <= BODY_LIMIT {
        let Some(frame) = body.frame().await else { break };
        let Ok(data) = frame?.into_data() else { continue };
        let missing = (BODY_LIMIT + 1).saturating_sub(bytes.len());
        bytes.extend_from_slice(&data[..data.len().min(missing)]);
    }
    Ok(bytes)
}
