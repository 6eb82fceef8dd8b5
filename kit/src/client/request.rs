//! A request, its answer, and the errors of a request without an answer.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// TCP and TLS, by a name or an address.
    Named(String, u16),
    /// A unix socket.
    Unix(PathBuf),
}

/// A server, as errors and requests name it.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: Address,
    /// What the head of a request says of it; `None` if it cannot be said there.
    pub(super) host: Option<HeaderValue>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its method.
    pub method: Method,
    /// Its path, and query if there is one.
    pub path: String,
    /// Headers in addition to the usual ones; a header of the same name replaces the usual one.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// The deadline of the whole request.
    pub deadline: Duration,
    /// The most bytes of the answer's body.
    pub max_answer: usize,
}

/// An answer, with any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The path is invalid.
    #[error("{0:?} is no path to ask for")]
    Path(String),
    /// No server listens at the address, so the request was certainly not carried out.
    #[error("cannot connect to {0}")]
    Connect(Address, #[source] std::io::Error),
    /// The handshake failed, so the request was certainly not carried out. The text says why to a person.
    #[error("no TLS connection to {0}: {1}")]
    Handshake(Address, &'static str, #[source] std::io::Error),
    /// No whole answer before the deadline; the request may have been carried out.
    #[error("no answer from {0} within {1:?}")]
    NoAnswer(Address, Duration),
    /// The answer has more bytes than this limit; the request was probably carried out.
    #[error("the answer of {0} is larger than {1} bytes")]
    TooLarge(Address, usize),
    /// The connection broke or did not carry HTTP; the request may have been carried out.
    #[error("the connection to {0} broke")]
    Broken(Address, #[source] Box<dyn std::error::Error + Send + Sync>),
}

// === impl Peer ===

impl Peer {
    pub(super) fn at(address: Address) -> Self {
        let host = match &address {
            Address::Tcp(_) | Address::Named(..) => address.to_string().try_into().ok(),
            Address::Unix(_) => Some(HeaderValue::from_static("localhost")),
        };
        Self { address, host }
    }
}

// === impl Address ===

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Named(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Named(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

// === impl Ask ===

impl Ask {
    /// A request with the usual limits: 2 s, 64 KiB.
    pub fn new(method: Method, path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: HeaderMap::new(),
            body: body.into(),
            deadline: Duration::from_secs(2),
            max_answer: 64 * 1024,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Sets the limit of the answer's body.
    #[must_use]
    pub fn at_most(self, max_answer: usize) -> Self {
        Self { max_answer, ..self }
    }
}

// === impl Answer ===

impl Answer {
    /// The body as shortened text, for a person.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().chars().take(500).collect()
    }
}
