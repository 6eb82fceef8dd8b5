//! Bounded requests over TCP or a unix socket.
//!
//! Every request has a deadline over all of it, and a limit on the answer's size; there are no
//! redirects, no proxy from the environment, no names to resolve but those of a `TlsWay`. [`ask`] makes a connection for each
//! request; [`Pool`] keeps connections to a peer that is asked again and again. When the deadline
//! passes the connection is closed, so a late answer is not heard.

mod connection;
mod pool;
mod request;
#[cfg(feature = "client-tls")]
mod trust;

pub use pool::{Pool, Way};
pub use request::{Address, Answer, Ask, ClientError};
#[cfg(feature = "client-tls")]
pub use trust::{TlsWay, Trust, TrustError, TrustFile, TrustFiles};

use connection::{After, connect, exchange};
use request::Peer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

/// Asks once.
///
/// # Errors
/// If no whole answer came in time, in bounds. A refusal by status is an answer.
pub async fn ask(to: &Address, ask: Ask) -> Result<Answer, ClientError> {
    let limit = ask.deadline;
    tokio::time::timeout(limit, attempt(to, ask))
        .await
        .unwrap_or_else(|_| Err(ClientError::NoAnswer(to.clone(), limit)))
}

async fn attempt(to: &Address, ask: Ask) -> Result<Answer, ClientError> {
    match to {
        Address::Tcp(address) => ask_over(connect(*address, to).await?, to, ask).await,
        Address::Named(host, port) => {
            let words = "names are asked over TLS, by a pool";
            let source = std::io::Error::new(std::io::ErrorKind::Unsupported, words);
            Err(ClientError::Connect(Address::Named(host.clone(), *port), source))
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await;
            let stream = stream.map_err(|source| ClientError::Connect(to.clone(), source))?;
            ask_over(stream, to, ask).await
        }
    }
}

/// Asks once over a connection that is there already, and has no deadline of its own; `to` is
/// for the request's head and for errors.
///
/// # Errors
/// If no whole answer came, in bounds. A refusal by status is an answer.
pub async fn ask_over<S>(mut stream: S, to: &Address, ask: Ask) -> Result<Answer, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let answered = exchange(&mut stream, &Peer::at(to.clone()), &ask, After::Close).await;
    answered.map(|answered| answered.answer).map_err(|unanswered| unanswered.error)
}

/// An error with its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
