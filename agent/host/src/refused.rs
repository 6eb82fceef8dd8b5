//! Why a request to the host's socket is refused: a kind, and a sentence that names the field, the
//! value and the limit.

use crate::api::Refusal;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use thiserror::Error;
use windlass_kit::telemetry::TelemetryError;
use windlass_protocol::VmName;
use windlass_protocol::words::sanitized;

/// Characters of a refusal.
const LONGEST: usize = 500;

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refused {
    /// It makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// It makes no sense at this moment.
    #[error("{0}")]
    NotNow(String),
    /// No VM of that name has a file in force; which there are, or what became of it.
    #[error("{0}")]
    UnknownVm(String),
    /// Nothing is served there.
    #[error("{0}")]
    NoSuchPath(String),
    /// What is served there takes another method.
    #[error("{0}")]
    WrongMethod(String),
    /// It is an order, and came through the socket that only shows.
    #[error("{0}")]
    Forbidden(String),
    /// The log cannot say or change what it logs.
    #[error("{0}")]
    Failed(String),
    /// It is done and will be forgotten at the next start.
    #[error("done, but it could not be written down and will not survive a restart: {0}")]
    NotKept(String),
    /// The controller has too many orders, or is gone.
    #[error("not done: the host is busy or about to end; try again")]
    Busy,
    /// The controller did not come to it in time.
    #[error("not done: the host did not come to it within {} s; try again", .0.as_secs())]
    Late(Duration),
    /// It reached the host after the last moment at which its sender wanted it.
    #[error("not done: the host came to it only after its sender gave up; try again")]
    Outdated,
    /// The process that sent it has ended.
    #[error("not done: the process that sent it has ended")]
    Abandoned,
}

// === impl Refused ===

impl Refused {
    pub(crate) fn nothing_is_known_of(vm: &VmName) -> Self {
        let name = &vm.name;
        Self::UnknownVm(format!("nothing is known of a VM {name}; see `windlass vm list`"))
    }
}

impl From<TelemetryError> for Refused {
    fn from(error: TelemetryError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code) = match &self {
            Self::Senseless(_) => (StatusCode::BAD_REQUEST, "bad-request"),
            Self::NotNow(_) => (StatusCode::CONFLICT, "not-now"),
            Self::UnknownVm(_) => (StatusCode::NOT_FOUND, "unknown-vm"),
            Self::NoSuchPath(_) => (StatusCode::NOT_FOUND, "no-such-path"),
            Self::WrongMethod(_) => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden"),
            Self::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
            Self::NotKept(_) => (StatusCode::INTERNAL_SERVER_ERROR, "not-kept"),
            Self::Busy | Self::Late(_) | Self::Outdated | Self::Abandoned => {
                (StatusCode::SERVICE_UNAVAILABLE, "busy")
            }
        };
        // It may quote the request.
        let message = sanitized(&self.to_string(), LONGEST);
        (status, Json(Refusal { code: code.to_owned(), message })).into_response()
    }
}
