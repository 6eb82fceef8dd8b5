//! Permits over HTTP, on every path, as the reference's plugin answers them.
//!
//! The method is checked here, everything else by the core's [`wire`], which parses a body once and
//! looks at its first [`BODY_LIMIT`](windlass_protocol::plugin::BODY_LIMIT) bytes.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tracing::{debug, warn};
use windlass_kit::server::{HangUp, OpenSince, Service};
use windlass_plugin_core::wire::{self, Refusal};
use windlass_protocol::PluginVersion;
use windlass_protocol::plugin::RawRequest;

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// What answers permit requests: the books of one node, or those of many.
pub trait Permits: Clone + Send + Sync + 'static {
    /// The body of the answer to a request that was read, or was refused while it was; or why it is refused. An answer
    /// may have to wait until what it promises is recorded.
    fn answer(
        &self,
        request: Result<RawRequest, Refusal>,
    ) -> impl Future<Output = Result<Vec<u8>, Refusal>> + Send;

    /// Whether the same request may be answered soon: then an agent to which any refusal is final gets no answer.
    fn passes(&self, _: &Refusal) -> bool {
        false
    }
}

/// Answers permit requests on every path of a listener.
#[derive(Clone, Debug)]
pub struct Endpoint<P>(pub P);

// === impl Endpoint ===

impl<P: Permits> Service for Endpoint<P> {
    fn answer(
        &self,
        request: Request<Bytes>,
        _: OpenSince,
    ) -> impl Future<Output = Response> + Send {
        // Read here: a request is large, and its future is kept small.
        self.respond(read(&request))
    }
}

impl<P: Permits> Endpoint<P> {
    /// The answer to a request that was [`read`].
    pub async fn respond(&self, read: Result<RawRequest, Refusal>) -> Response {
        let version = read.as_ref().ok().map(RawRequest::version);
        let is_final = version.is_some_and(|version| !version.features().refusals_pass);
        match self.0.answer(read).await {
            // axum gives bytes another content type first, so the response is built here.
            Ok(body) => {
                let mut response = Response::new(Body::from(body));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err(refusal) if is_final && self.0.passes(&refusal) => {
                debug!(%refusal, "permit request not answered");
                HangUp::response()
            }
            Err(refusal) => {
                warn!(%refusal, "permit request refused");
                let text = [(header::CONTENT_TYPE, "text/plain")];
                let status = StatusCode::from_u16(refusal.status());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let mut response = (status, text, refusal.to_string()).into_response();
                // Behind a Service a new connection may lead to the plugin that answers.
                if self.0.passes(&refusal) {
                    response.headers_mut().insert(header::CONNECTION, CLOSE);
                }
                response
            }
        }
    }
}

/// The permit request that this is, in a version that is spoken here.
///
/// # Errors
/// Why it is none.
pub fn read(request: &Request<Bytes>) -> Result<RawRequest, Refusal> {
    if request.method() == Method::POST {
        wire::read(request.body(), PluginVersion::SPOKEN)
    } else {
        Err(Refusal::Method)
    }
}
