//! A client with a pool of connections to one peer.
//!
//! A request uses a connection that was idle for less than [`CONNECTION_USED`], unless the peer closed it.
//! If a peer disappeared silently, the next request ends without an answer. The client then repeats it over
//! another connection if no byte was sent or its method is idempotent (RFC 9110, 9.2.2). For any other
//! request the outcome stays unknown.
//!
//! A pool has a limit on its connections. Where all are in use, a request waits for one of them, within its
//! deadline.

use super::connection::{After, Answered, Asked, Unanswered, connect, exchange};
use super::request::{Address, Answer, Ask, ClientError, Peer};
use crate::catch_panic::lock;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use windlass_protocol::timing::CONNECTION_USED;

/// A peer, and the connections to it.
#[derive(Debug)]
pub struct Pool<W: Way = SocketAddr> {
    to: W,
    peer: Peer,
    /// Connections that may carry a request beside those that do.
    room: Semaphore,
    /// Each with the time since when.
    idle: Mutex<Vec<(W::Stream, Instant)>>,
}

/// The way to a peer.
pub trait Way: Sync {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The peer, as errors and requests name it.
    fn address(&self) -> Address;

    /// Makes a connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Stream, ClientError>> + Send;

    /// Whether the peer sent nothing since its last answer, not even the end of the connection.
    fn is_silent(stream: &Self::Stream) -> bool;
}

// === impl Pool ===

impl<W: Way> Pool<W> {
    /// An empty pool for this peer, of at most `most` connections.
    pub fn new(to: W, most: usize) -> Self {
        let (peer, room) = (Peer::at(to.address()), Semaphore::new(most));
        Self { to, peer, room, idle: Mutex::default() }
    }

    /// The way to the peer.
    pub const fn to(&self) -> &W {
        &self.to
    }

    /// Sends a request, over an idle connection if possible. Dropping the future closes the connection.
    ///
    /// # Errors
    /// If no whole answer came in time, in bounds. A refusal by status is an answer.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, ClientError> {
        let limit = ask.deadline;
        timeout(limit, self.attempt(&ask))
            .await
            .unwrap_or_else(|_| Err(ClientError::NoAnswer(self.peer.address.clone(), limit)))
    }

    /// Closes all idle connections, because the peer was replaced.
    pub fn forget(&self) {
        lock(&self.idle).clear();
    }

    async fn attempt(&self, ask: &Ask) -> Result<Answer, ClientError> {
        // The semaphore is never closed.
        let _place = self.room.acquire().await.ok();
        loop {
            let idle = self.take();
            let was_idle = idle.is_some();
            let mut stream = match idle {
                Some(stream) => stream,
                None => self.to.connect().await?,
            };
            match exchange(&mut stream, &self.peer, ask, After::Keep).await {
                Ok(Answered { answer, is_kept }) => {
                    if is_kept {
                        lock(&self.idle).push((stream, Instant::now()));
                    }
                    return Ok(answer);
                }
                Err(Unanswered { asked: Asked::Not, .. }) if was_idle => {}
                Err(Unanswered { asked: Asked::Perhaps, .. })
                    if was_idle && ask.method.is_idempotent() => {}
                Err(Unanswered { error, .. }) => return Err(error),
            }
        }
    }

    /// The most recently used connection; closes those that were idle for too long, or that the peer closed.
    fn take(&self) -> Option<W::Stream> {
        let mut idle = lock(&self.idle);
        let usable = |since: &Instant| since.elapsed() < CONNECTION_USED;
        idle.retain(|(stream, since)| usable(since) && W::is_silent(stream));
        idle.pop().map(|(stream, _)| stream)
    }
}

// === impl SocketAddr ===

impl Way for SocketAddr {
    type Stream = TcpStream;

    fn address(&self) -> Address {
        Address::Tcp(*self)
    }

    async fn connect(&self) -> Result<TcpStream, ClientError> {
        connect(*self, &self.address()).await
    }

    fn is_silent(stream: &TcpStream) -> bool {
        stream.try_read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}
