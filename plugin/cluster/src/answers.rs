//! What an answer of the API server means: one rule for every request that reads or writes an object.
//!
//! A refusal is certain: the request had no effect, and the same one has none later. Everything else, the rate, the time,
//! credentials that are being renewed, a server that fails, passes; what was asked may have taken effect.

use crate::connect::{ANSWERS_WITHIN, Failed, within};
use std::future::Future;

/// A request to the API server that was not answered with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
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
        match status {
            401 | 408 | 429 => Self::Unknown(why),
            404 | 410 => Self::Gone(why),
            409 | 412 => Self::Conflict(why),
            422 => Self::Invalid(why),
            400..500 => Self::Refused(why),
            _ => Self::Unknown(why),
        }
    }
}

/// The answer of the API server, within its time.
pub(crate) async fn answered<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    within(ANSWERS_WITHIN, request).await.map_err(|failed| match failed {
        Failed::Error(kube::Error::Api(status)) => Failure::of(status.code, status.message),
        failed @ (Failed::Error(_) | Failed::Late(_)) => Failure::Unknown(failed.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_no_refusal() {
        let why = || "why".to_owned();
        for passes in [401, 408, 429, 500, 502, 503, 504, 0, 302] {
            assert_eq!(Failure::of(passes, why()), Failure::Unknown(why()), "{passes}");
        }
        for refused in [400, 403, 405, 413, 415, 418, 451] {
            assert_eq!(Failure::of(refused, why()), Failure::Refused(why()), "{refused}");
        }
        assert_eq!(Failure::of(404, why()), Failure::Gone(why()));
        assert_eq!(Failure::of(409, why()), Failure::Conflict(why()));
        assert_eq!(Failure::of(422, why()), Failure::Invalid(why()));
    }
}
