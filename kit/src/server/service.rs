//! What answers the requests of a server.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::Request;
use std::time::Instant;
use thiserror::Error;
use tower::ServiceExt;

/// What answers requests, whose bodies are read.
pub trait Service: Clone + Send + Sync + 'static {
    /// The answer to one, over a connection that is open `since` then.
    fn answer(
        &self,
        request: Request<Bytes>,
        since: OpenSince,
    ) -> impl Future<Output = Response> + Send;
}

/// Since when the connection of a request is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenSince(pub Instant);

/// Among the extensions of a response: the connection ends, and the peer gets no answer.
///
/// It is for peers that take any answer for a final one, where the right one is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the service ends the connection in place of an answer")]
pub struct HangUp;

// === impl OpenSince ===

impl OpenSince {
    /// It opens now.
    pub fn now() -> Self {
        Self(Instant::now())
    }
}

// === impl HangUp ===

impl HangUp {
    /// A response that is not sent.
    pub fn response() -> Response {
        let mut response = Response::default();
        response.extensions_mut().insert(Self);
        response
    }

    /// What is sent of a response.
    pub(super) fn or(response: Response) -> Result<Response, Self> {
        response.extensions().get::<Self>().map_or(Ok(()), |this| Err(*this)).map(|()| response)
    }
}

impl Service for Router {
    async fn answer(&self, request: Request<Bytes>, _: OpenSince) -> Response {
        let Ok(response) = self.clone().oneshot(request.map(Body::from)).await;
        response
    }
}
