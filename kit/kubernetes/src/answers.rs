//! What an answer of the API server means: one rule for every request that reads or writes an object.
//!
//! A refusal is certain: the request had no effect, and the same one has none later. Everything else, the rate, the time,
//! credentials that are being renewed, a server that fails, passes; what was asked may have taken effect.

use crate::connect::{Failed, within};
use std::fmt;
use std::future::Future;
use std::time::Duration;
use windlass_protocol::NoSuccess;
use windlass_protocol::timing::API_SERVER_ANSWERS;

/// A request to the API server that was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no such object.
    Gone(String),
    /// The object is not what the request is for.
    Conflict(String),
    /// No object can be so, or a JSON patch found another value than it tests for.
    Invalid(String),
    /// It is not allowed, or cannot be understood.
    Refused(String),
    /// It may have taken effect, and may succeed later.
    Unknown(String),
}

// === impl Failure ===

impl Failure {
    /// Of an answer with this status, which is no success.
    fn of(status: u16, why: String) -> Self {
        match NoSuccess::of(status) {
            NoSuccess::Gone => Self::Gone(why),
            NoSuccess::Conflict => Self::Conflict(why),
            NoSuccess::Invalid => Self::Invalid(why),
            NoSuccess::Refused => Self::Refused(why),
            NoSuccess::Unknown => Self::Unknown(why),
        }
    }
}

impl Failure {
    /// What it says of the request.
    pub const fn kind(&self) -> NoSuccess {
        match self {
            Self::Gone(_) => NoSuccess::Gone,
            Self::Conflict(_) => NoSuccess::Conflict,
            Self::Invalid(_) => NoSuccess::Invalid,
            Self::Refused(_) => NoSuccess::Refused,
            Self::Unknown(_) => NoSuccess::Unknown,
        }
    }
}

/// As the API server, or what leads to it, says it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why)
            | Self::Conflict(why)
            | Self::Invalid(why)
            | Self::Refused(why)
            | Self::Unknown(why) => f.write_str(why),
        }
    }
}

/// The answer of the API server, within its time.
///
/// # Errors
/// The API server answers with no success, or not at all.
pub async fn answered<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    answered_within(API_SERVER_ANSWERS, request).await
}

/// The same, within this time.
///
/// # Errors
/// The API server answers with no success, or not at all.
pub async fn answered_within<T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    within(limit, request).await.map_err(|failed| match failed {
        Failed::Error(kube::Error::Api(status)) => Failure::of(status.code, status.message),
        failed @ (Failed::Error(_) | Failed::Late(_)) => Failure::Unknown(failed.to_string()),
    })
}
