//! A client with a pool of connections to one peer.
//!
//! A request uses a connection that was idle for less than [`CONNECTION_USED`], unless the peer closed it.
//! If a peer disappeared silently, the next request ends without an answer. The client then repeats it over
//! another connection if no byte was sent or its method is idempotent (RFC 9110, 9.2.2). For any other
//! request the outcome stays unknown.
//!
//! A pool has a limit on its connections. Where all are in use, a request waits for one of them, within its
//! deadline.

use super::connection::{After, Asked, Connection, Unanswered, connect};
use super::request::{Address, Answer, Ask, ClientError};
use crate::catch_panic::lock;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use windlass_protocol::timing::CONNECTION_USED;

/// A peer, and the connections to it.
#[derive(Debug)]
pub struct Pool {
    to: SocketAddr,
    /// Connections that may carry a request beside those that do.
    room: Semaphore,
    /// Each with the time since when.
    idle: Mutex<Vec<(TcpStream, Instant)>>,
}

// === impl Pool ===

impl Pool {
    /// An empty pool for this peer, of at most `most` connections.
    pub const fn new(to: SocketAddr, most: usize) -> Self {
        Self { to, room: Semaphore::const_new(most), idle: Mutex::new(Vec::new()) }
    }

    /// The address of the peer.
    pub const fn to(&self) -> SocketAddr {
        self.to
    }

    /// Sends a request, over an idle connection if possible. Dropping the future closes the connection.
    ///
    /// # Errors
    /// If no whole answer came in time, in bounds. A refusal by status is an answer.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, ClientError> {
        let limit = ask.deadline;
        let to = Address::Tcp(self.to);
        timeout(limit, self.attempt(&to, &ask))
            .await
            .unwrap_or_else(|_| Err(ClientError::NoAnswer(to, limit)))
    }

    /// Closes all idle connections, because the peer was replaced.
    pub fn forget(&self) {
        lock(&self.idle).clear();
    }

    async fn attempt(&self, to: &Address, ask: &Ask) -> Result<Answer, ClientError> {
        // The semaphore is never closed.
        let _place = self.room.acquire().await.ok();
        // One place connects and one asks, because the future of a request has room for each.
        loop {
            let idle = self.take();
            let was_idle = idle.is_some();
            let stream = match idle {
                Some(stream) => stream,
                None => connect(self.to, to).await?,
            };
            let mut connection = Connection::over(stream, to).await?;
            match connection.ask(to, ask, After::Keep).await {
                Err(Unanswered { asked: Asked::Not, .. }) if was_idle => {}
                Err(Unanswered { asked: Asked::Perhaps, .. })
                    if was_idle && ask.method.is_idempotent() => {}
                answered => return self.answered(connection, answered).await,
            }
        }
    }

    /// Keeps a connection after an answer, if the peer keeps it too.
    async fn answered(
        &self,
        connection: Connection<TcpStream>,
        answered: Result<Answer, Unanswered>,
    ) -> Result<Answer, ClientError> {
        let answer = answered.map_err(|unanswered| unanswered.error)?;
        if let Some(stream) = connection.into_stream().await {
            lock(&self.idle).push((stream, Instant::now()));
        }
        Ok(answer)
    }

    /// The most recently used connection; closes those that were idle for too long, or that the peer closed.
    fn take(&self) -> Option<TcpStream> {
        let mut idle = lock(&self.idle);
        let usable = |since: &Instant| since.elapsed() < CONNECTION_USED;
        idle.retain(|(stream, since)| usable(since) && is_silent(stream));
        idle.pop().map(|(stream, _)| stream)
    }
}

/// Whether the peer sent nothing since its last answer, not even the end of the connection.
fn is_silent(stream: &TcpStream) -> bool {
    stream.try_read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
