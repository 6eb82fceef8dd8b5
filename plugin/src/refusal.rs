//! Why a request for a permit is refused, and with which status.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use thiserror::Error;
use windlass_plugin_core::wire;

/// Why a request is refused.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Not the method of the protocol.
    #[error("must be POST")]
    Method,
    /// The sender went away.
    #[error("bad JSON: body: the request broke off before its end")]
    BrokeOff,
    /// What it says.
    #[error(transparent)]
    Wire(#[from] wire::Refusal),
}

// === impl Refusal ===

impl Refusal {
    /// The status of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Method | Self::BrokeOff => 400,
            Self::Wire(refusal) => refusal.status(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = [(header::CONTENT_TYPE, "text/plain")];
        let status = StatusCode::from_u16(self.status());
        (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), text, self.to_string())
            .into_response()
    }
}
