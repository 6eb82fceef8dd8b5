//! The limits of a server, its refusals in words, and their counts by reason.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
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

/// Refusals of one or several servers. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    refused: Family<Labels, Counter>,
}

/// Why a server refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many connections.
    Crowded,
    /// The request's head was too slow.
    HeadTime,
    /// The request's body was too large.
    BodySize,
    /// The request's body was too slow.
    BodyTime,
    /// The request's body was incomplete.
    BodyBroken,
    /// The router was too slow.
    AnswerTime,
    /// The router panicked.
    Panic,
    /// The connection's handshake failed: no request came.
    Tls(Handshake),
}

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handshake {
    /// The peer speaks no TLS.
    PlainText,
    /// The peer took too long.
    Slow,
    /// The listener has no certificate yet.
    NoCertificate,
    /// The CA of the peer's certificate is not the listener's.
    UnknownCa,
    /// The peer's certificate is not valid any more.
    Expired,
    /// The peer's certificate is not valid yet.
    NotYetValid,
    /// Something else is wrong with the peer's certificate.
    BadCertificate,
    /// The peer does not trust the listener's certificate.
    Distrusted,
    /// Anything else.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// The spelling of a [`Refusal`], so there are only so many.
    reason: &'static str,
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
        let mut response = (status, plain, text).into_response();
        if !matches!(refusal, Refusal::Panic | Refusal::AnswerTime) {
            // The rest of the body is not read; the connection ends with the answer.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
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
            Refusal::Tls(why) => (StatusCode::BAD_REQUEST, format!("{}\n", why.as_str())),
        }
    }
}

// === impl Counts ===

impl Counts {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_refusals",
            "Requests that a server refused by itself, by reason",
            self.refused.clone(),
        );
    }

    /// The number of refusals with this reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.refused.get_or_create(&Labels { reason: reason.as_str() }).get()
    }

    pub(super) fn refused(&self, reason: Refusal) {
        self.refused.get_or_create(&Labels { reason: reason.as_str() }).inc();
    }
}

// === impl Refusal ===

impl Refusal {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::HeadTime => "head-time",
            Self::BodySize => "body-size",
            Self::BodyTime => "body-time",
            Self::BodyBroken => "body-broken",
            Self::AnswerTime => "answer-time",
            Self::Panic => "panic",
            Self::Tls(why) => why.as_str(),
        }
    }
}

// === impl Handshake ===

impl Handshake {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlainText => "tls-plain-text",
            Self::Slow => "tls-slow",
            Self::NoCertificate => "tls-no-certificate",
            Self::UnknownCa => "tls-unknown-ca",
            Self::Expired => "tls-expired",
            Self::NotYetValid => "tls-not-yet-valid",
            Self::BadCertificate => "tls-bad-certificate",
            Self::Distrusted => "tls-distrusted",
            Self::Broken => "tls-broken",
        }
    }
}
