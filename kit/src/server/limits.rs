//! The limits of a server, and the texts of its refusals.

use super::counts::{Counts, Refusal};
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at the same time. A further one replaces the longest idle connection; without an idle
    /// connection, it is refused.
    pub connections: usize,
    /// From the first byte of a request's head to its last; also how long a connection may idle.
    pub head_time: Duration,
    /// Bytes of a request's head.
    pub head_size: usize,
    /// Bytes of a request's body.
    pub body_size: usize,
    /// From a request's head to its answer, its body included.
    pub request_time: Duration,
    /// The longest life of a connection, so that a peer that never reads its answers cannot hold it.
    pub connection_time: Duration,
    /// Counts the refusals.
    pub counts: Counts,
}

// === impl Limits ===

impl Limits {
    /// For small messages among few peers: 32 connections, 64 KiB, 5 s.
    pub fn small(counts: Counts) -> Self {
        Self {
            connections: 32,
            head_time: Duration::from_secs(5),
            head_size: 16 * 1024,
            body_size: 64 * 1024,
            request_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(60),
            counts,
        }
    }

    pub(super) fn refuse(&self, refusal: Refusal) -> Response {
        self.counts.refused(refusal);
        let (status, text) = self.words(refusal);
        let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        // The rest of the body is not read; the connection ends with the answer.
        let close = [(header::CONNECTION, "close")];
        match refusal {
            Refusal::Panic | Refusal::AnswerTime => (status, plain, text).into_response(),
            Refusal::Crowded
            | Refusal::HeadTime
            | Refusal::BodySize
            | Refusal::BodyTime
            | Refusal::BodyBroken => (status, plain, close, text).into_response(),
        }
    }

    pub(super) fn words(&self, refusal: Refusal) -> (StatusCode, String) {
        let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
        match refusal {
            Refusal::Crowded => {
                (StatusCode::SERVICE_UNAVAILABLE, "too many connections\r\n".to_owned())
            }
            Refusal::HeadTime => (
                StatusCode::REQUEST_TIMEOUT,
                format!("the request's head did not arrive within {}\n", seconds(self.head_time)),
            ),
            Refusal::BodySize => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the request's body is larger than {} bytes\n", self.body_size),
            ),
            Refusal::BodyTime => (
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the request's body did not arrive within {}\n",
                    seconds(self.request_time)
                ),
            ),
            Refusal::BodyBroken => {
                (StatusCode::BAD_REQUEST, "the request's body broke off\n".to_owned())
            }
            Refusal::AnswerTime => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no answer within {}\n", seconds(self.request_time)),
            ),
            Refusal::Panic => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal error; the log says which\n".to_owned(),
            ),
        }
    }
}
