//! Why a request to the host's socket is refused: a status, a code, and a sentence that names the field, the
//! value and the limit.

use crate::api::Refusal;
use crate::commands::Declined;
use axum::Json;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use windlass_kit::telemetry::TelemetryError;
use windlass_protocol::VmName;
use windlass_protocol::words::sanitized;

/// Characters of a refusal.
const LONGEST: usize = 500;

/// A request that is refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
}

pub(super) async fn no_such_path(uri: Uri) -> Refused {
    let path: String = uri.path().chars().take(100).collect();
    let message = format!("there is nothing at {path}; try /v1/state or /v1/host");
    Refused { status: StatusCode::NOT_FOUND, code: "no-such-path", message }
}

pub(super) async fn wrong_method(method: Method, uri: Uri) -> Refused {
    let path: String = uri.path().chars().take(100).collect();
    let method: String = method.as_str().chars().take(20).collect();
    let message = format!(
        "{method} is not for {path}; what is read takes GET, an order takes POST, and only the log \
         level PUT"
    );
    Refused { status: StatusCode::METHOD_NOT_ALLOWED, code: "wrong-method", message }
}

pub(super) fn unknown(vm: &VmName) -> Refused {
    let message = format!("nothing is known of a VM {}; see `windlass vm list`", vm.name);
    Refused { status: StatusCode::NOT_FOUND, code: "unknown-vm", message }
}

// === impl Refused ===

impl Refused {
    pub(crate) fn bad(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "bad-request", message }
    }

    pub(crate) fn forbidden(message: String) -> Self {
        Self { status: StatusCode::FORBIDDEN, code: "forbidden", message }
    }

    pub(super) fn failed(error: &TelemetryError) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { status, code: "failed", message: error.to_string() }
    }
}

impl From<Declined> for Refused {
    fn from(declined: Declined) -> Self {
        let (status, code) = match declined {
            Declined::UnknownVm(_) => (StatusCode::NOT_FOUND, "unknown-vm"),
            Declined::Senseless(_) => (StatusCode::BAD_REQUEST, "bad-request"),
            Declined::NotNow(_) => (StatusCode::CONFLICT, "not-now"),
            Declined::NotKept(_) => (StatusCode::INTERNAL_SERVER_ERROR, "not-kept"),
            Declined::Busy | Declined::Late | Declined::Outdated | Declined::Abandoned => {
                (StatusCode::SERVICE_UNAVAILABLE, "busy")
            }
        };
        Self { status, code, message: declined.to_string() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        // It may quote the request.
        let message = sanitized(&self.message, LONGEST);
        let body = Refusal { code: self.code.to_owned(), message };
        (self.status, Json(body)).into_response()
    }
}
