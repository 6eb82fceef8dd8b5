//! What answers the requests of a server.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::Request;
use tower::ServiceExt;

/// What answers requests, whose bodies are read.
pub trait Service: Clone + Send + Sync + 'static {
    /// The answer to one.
    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = Response> + Send;
}

impl Service for Router {
    async fn answer(&self, request: Request<Bytes>) -> Response {
        let Ok(response) = self.clone().oneshot(request.map(Body::from)).await;
        response
    }
}
