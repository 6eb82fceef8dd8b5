//! A client that keeps its connections between requests.
//!
//! A connection that was idle for less than [`CONNECTION_USED`] is used again, if its peer has not
//! closed it. That a peer went away without a goodbye is found out by the next request: the connection
//! ends without an answer. Such a request is asked once more, over another connection, if nothing of it
//! was sent or its method means the same asked twice (RFC 9110, 9.2.2); of any other it stays open
//! whether it was done.

use super::line::{After, Asked, Line, Unanswered, connect};
use super::request::{Address, Answer, Ask, ClientError};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use windlass_protocol::timing::CONNECTION_USED;

/// A peer, and idle connections to it.
#[derive(Debug)]
pub struct Kept {
    to: SocketAddr,
    most: usize,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    line: Line<TcpStream>,
    since: Instant,
}

// === impl Kept ===

impl Kept {
    /// No connection yet to this peer. At most `most` are kept while nothing is asked.
    pub const fn new(to: SocketAddr, most: usize) -> Self {
        Self { to, most, idle: Mutex::new(Vec::new()) }
    }

    /// Who is asked.
    pub const fn to(&self) -> SocketAddr {
        self.to
    }

    /// Asks once, over a kept connection where there is one. A future that is dropped hangs up.
    ///
    /// # Errors
    /// If no whole answer came in time, in bounds. A refusal by status is an answer.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, ClientError> {
        let limit = ask.deadline;
        let to = Address::Tcp(self.to);
        timeout(limit, self.attempt(&to, ask))
            .await
            .unwrap_or_else(|_| Err(ClientError::NoAnswer { to, limit }))
    }

    /// Hangs up on the peer: it is known to be another one now.
    pub fn forget(&self) {
        self.idle().clear();
    }

    async fn attempt(&self, to: &Address, ask: Ask) -> Result<Answer, ClientError> {
        while let Some(mut line) = self.take() {
            if !line.is_open().await {
                continue;
            }
            match line.ask(to, ask.clone(), After::Keep).await {
                Err(Unanswered { asked: Asked::Not, .. }) => {}
                Err(Unanswered { asked: Asked::Perhaps, .. }) if ask.method.is_idempotent() => {}
                answered => return self.answered(line, answered).await,
            }
        }
        let mut line = Line::over(connect(self.to, to).await?, to).await?;
        let answered = line.ask(to, ask, After::Keep).await;
        self.answered(line, answered).await
    }

    /// Keeps a connection over which an answer came, if its peer does.
    async fn answered(
        &self,
        mut line: Line<TcpStream>,
        answered: Result<Answer, Unanswered>,
    ) -> Result<Answer, ClientError> {
        let answer = answered.map_err(|unanswered| unanswered.error)?;
        let is_open = line.is_open().await;
        let mut idle = self.idle();
        if is_open && idle.len() < self.most {
            idle.push(Idle { line, since: Instant::now() });
        }
        Ok(answer)
    }

    /// The connection that was used last; those that were idle for too long are closed.
    fn take(&self) -> Option<Line<TcpStream>> {
        let mut idle = self.idle();
        idle.retain(|idle| idle.since.elapsed() < CONNECTION_USED);
        idle.pop().map(|idle| idle.line)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
