//! One bounded request over TCP or a unix socket.
//!
//! Every request has a deadline over all of it, and a limit on the answer's size; there are no
//! redirects, no proxy from the environment, no names to resolve, and no connection is kept:
//! a guest may restart between two requests, and a kept connection would be the guest's that
//! is gone. When the deadline passes the connection is closed, so a late answer is not heard.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Bytes of an answer's head.
const MAX_HEAD: usize = 16 * 1024;

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

/// Asks once.
///
/// # Errors
/// If no whole answer came in time, in bounds. A refusal by status is an answer.
pub async fn ask(to: &Address, ask: Ask) -> Result<Answer, ClientError> {
    let limit = ask.deadline;
    tokio::time::timeout(limit, attempt(to, ask))
        .await
        .unwrap_or_else(|_| Err(ClientError::NoAnswer { to: to.clone(), limit }))
}

async fn attempt(to: &Address, ask: Ask) -> Result<Answer, ClientError> {
    let failed = |source| ClientError::Connect { to: to.clone(), source };
    match to {
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            ask_over(stream, to, ask).await
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(failed)?;
            ask_over(stream, to, ask).await
        }
    }
}

/// Asks once over a connection that is there already, and has no deadline of its own; `to` is
/// for the request's head and for errors.
///
/// # Errors
/// If no whole answer came, in bounds. A refusal by status is an answer.
pub async fn ask_over<S>(stream: S, to: &Address, ask: Ask) -> Result<Answer, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (path, limit) = (ask.path.clone(), ask.max_answer);
    let mut request = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(header::HOST, to.host())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .body(Full::new(ask.body))
        .map_err(|_| ClientError::Path { path })?;
    request.headers_mut().extend(ask.headers);
    let broken = |source: Box<dyn std::error::Error + Send + Sync>| {
        if source.is::<LengthLimitError>() {
            ClientError::TooLarge { to: to.clone(), limit }
        } else {
            ClientError::Broken { to: to.clone(), source }
        }
    };
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(error.into()))?;
    let mut answer = pin!(async {
        let response = sender.send_request(request).await.map_err(|error| broken(error.into()))?;
        let status = response.status().as_u16();
        // Declared too large: not worth the wait.
        if response.body().size_hint().lower() > limit as u64 {
            return Err(ClientError::TooLarge { to: to.clone(), limit });
        }
        let body = Limited::new(response.into_body(), limit).collect().await.map_err(broken)?;
        Ok(Answer { status, body: body.to_bytes() })
    });
    // The connection is driven here, so that it ends when this request does.
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        ended = connection => match ended {
            // What had arrived is still handed over, or its error is.
            Ok(()) | Err(_) => answer.await,
        },
    }
}

// === impl Address ===

impl Address {
    fn host(&self) -> String {
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
