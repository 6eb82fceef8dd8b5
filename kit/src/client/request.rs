//! A request, its answer, and why there is none.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its method.
    pub method: Method,
    /// Its path, and query if there is one.
    pub path: String,
    /// Headers beside the usual ones; one of the same name stands in for the usual one.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// How long all of it may take.
    pub deadline: Duration,
    /// Bytes of the answer's body.
    pub max_answer: usize,
}

/// What came back, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The request is none.
    #[error("{path:?} is no path to ask for")]
    Path {
        /// What was asked for.
        path: String,
    },
    /// Nobody listens there; certainly nothing was done.
    #[error("cannot connect to {to}")]
    Connect {
        /// Where.
        to: Address,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No whole answer in time; it may have been done.
    #[error("no answer from {to} within {limit:?}")]
    NoAnswer {
        /// Who was asked.
        to: Address,
        /// How long was waited.
        limit: Duration,
    },
    /// The answer is larger than any that is expected; it was probably done.
    #[error("the answer of {to} is larger than {limit} bytes")]
    TooLarge {
        /// Who was asked.
        to: Address,
        /// The limit.
        limit: usize,
    },
    /// The connection broke, or carried something that is not HTTP; it may have been done.
    #[error("the connection to {to} broke")]
    Broken {
        /// Who was asked.
        to: Address,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

// === impl Address ===

impl Address {
    pub(super) fn host(&self) -> String {
        match self {
            Self::Tcp(address) => address.to_string(),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
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

    /// The same, with this header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same, with this deadline.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same, with this limit on the answer's body.
    #[must_use]
    pub fn at_most(self, max_answer: usize) -> Self {
        Self { max_answer, ..self }
    }
}

// === impl Answer ===

impl Answer {
    /// The body as text, shortened, for a person.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().chars().take(500).collect()
    }
}
