//! The plugin, called in memory: the agent's questions go through the same router and the same
//! bytes as over a socket, so there is one code path and no port.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use bytes::Bytes;
use tower::ServiceExt;
use windlass_agent::{Asked, Permits};
use windlass_protocol::plugin::METHOD;

/// An answer of the plugin is a few hundred bytes.
const LARGEST: usize = 64 * 1024;

/// The plugin of this process.
pub(super) struct InMemory(Router);

// === impl InMemory ===

impl InMemory {
    pub(super) const fn new(router: Router) -> Self {
        Self(router)
    }
}

impl Permits for InMemory {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        let router = self.0.clone();
        Box::pin(async move {
            let request = Request::builder()
                .method(METHOD)
                .uri("/")
                .body(Body::from(body))
                .map_err(|error| error.to_string())?;
            let Ok(response) = router.oneshot(request).await;
            let status = response.status().as_u16();
            let answer = to_bytes(response.into_body(), LARGEST).await;
            Ok((status, answer.map_err(|error| error.to_string())?))
        })
    }

    fn place(&self) -> String {
        "in this process".to_owned()
    }
}
