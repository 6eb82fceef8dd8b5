//! The server: one request per connection, and a limit on everything.
//!
//! A connection has [`HEAD`] to send its head, [`BODY`] to send its body, and [`WHOLE`] in
//! all; a body is at most [`LARGEST`] bytes. Of more than [`CONNECTIONS`] at once the oldest
//! is closed: an honest one is done in milliseconds, so it is the slow senders who go, and
//! they never keep an agent out. What is answered is in [`endpoints`].

pub mod endpoints;

use crate::beside::Beside;
use crate::log;
use crate::shared::Shared;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// At most so many connections at once: an agent and its successor have a handful.
pub const CONNECTIONS: usize = 32;

/// Within this time the head of a request must be there.
pub const HEAD: Duration = Duration::from_secs(2);

/// Within this time after the head the body must be there.
pub const BODY: Duration = Duration::from_secs(2);

/// After this long a connection is closed, whatever it is at. A registration takes the
/// longest: a call to the agent, and bringing memory online.
pub const WHOLE: Duration = Duration::from_secs(10);

/// The longest body; the reference's are below 200 bytes.
pub const LARGEST: usize = 16 * 1024;

/// The most memory for the head of a request.
const HEAD_BUFFER: usize = 16 * 1024;

/// When no connection can be accepted (no descriptors are left), wait for some to go.
const BREATH: Duration = Duration::from_millis(100);

/// Serves until the end of the program.
pub async fn serve<B: Beside>(shared: Arc<Shared<B>>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(Arc::clone(&shared), stream);
                    oldest_first.push_back(connections.spawn(connection));
                }
                Err(error) => {
                    log::warn(format_args!("cannot accept: {error}"));
                    sleep(BREATH).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
        oldest_first.retain(|connection| !connection.is_finished());
        while oldest_first.len() > CONNECTIONS {
            shared.counts.crowded.add();
            if let Some(oldest) = oldest_first.pop_front() {
                oldest.abort();
            }
        }
    }
}

/// Serves one connection, of whatever kind, to its end.
pub async fn connection<B, S>(shared: Arc<Shared<B>>, stream: S)
where
    B: Beside,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| endpoints::answer(&shared, request));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BUFFER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A peer that goes away is its own affair.
    let _ = timeout(WHOLE, serving).await;
}
