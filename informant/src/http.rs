//! The server: requests one after another on each connection, and a limit on everything.
//!
//! A connection has [`HEAD`] to send the next head, [`BODY`] to send its body, and each request
//! [`WHOLE`] in all; a body is at most [`LARGEST`] bytes. Of more than [`CONNECTIONS`] at once the
//! oldest of those on which no whole request is being answered is closed: an agent opens another, and
//! slow senders never keep an agent out. What is answered is in [`endpoints`].

pub mod endpoints;

use crate::log;
use crate::memory_cotenant::MemoryCotenant;
use crate::shared::Shared;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use windlass_protocol::timing::CONNECTION_KEPT;

/// At most so many connections at once: an agent and its successor have a handful.
pub const CONNECTIONS: usize = 32;

/// Within this time the head of the next request must be there.
pub const HEAD: Duration = CONNECTION_KEPT;

/// Within this time after the head the body must be there.
pub const BODY: Duration = Duration::from_secs(2);

/// A request that is not answered after this long never is: its connection is closed. A registration
/// takes the longest: a call to the agent, and bringing memory online.
pub const WHOLE: Duration = Duration::from_secs(10);

/// The longest body; the reference's are below 200 bytes.
pub const LARGEST: usize = 16 * 1024;

/// The most memory for the head of a request.
const HEAD_BUFFER: usize = 16 * 1024;

/// When no connection can be accepted (no descriptors are left), wait for some to go.
const BREATH: Duration = Duration::from_millis(100);

/// A connection that is being served.
struct Open {
    task: AbortHandle,
    busy: Arc<AtomicBool>,
}

/// Serves until the end of the program.
pub async fn serve<B: MemoryCotenant>(shared: Arc<Shared<B>>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<Open> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let busy = Arc::new(AtomicBool::new(false));
                    let connection = connection(Arc::clone(&shared), stream, Arc::clone(&busy));
                    oldest_first.push_back(Open { task: connections.spawn(connection), busy });
                }
                Err(error) => {
                    log::warn(format_args!("cannot accept: {error}"));
                    sleep(BREATH).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
        oldest_first.retain(|open| !open.task.is_finished());
        while oldest_first.len() > CONNECTIONS {
            shared.counts.crowded.add();
            // The newest has had no time to ask.
            let mut others = oldest_first.iter().take(CONNECTIONS);
            let idle = others.position(|open| !open.busy.load(Ordering::Relaxed));
            if let Some(open) = oldest_first.remove(idle.unwrap_or(0)) {
                open.task.abort();
            }
        }
    }
}

/// Serves one connection, of whatever kind, to its end; `busy` says whether a whole request is there and
/// being answered.
pub async fn connection<B, S>(shared: Arc<Shared<B>>, stream: S, busy: Arc<AtomicBool>)
where
    B: MemoryCotenant,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (shared, busy) = (&shared, &busy);
    let service = service_fn(move |request| async move {
        let answered = timeout(WHOLE, endpoints::answer(shared, request, busy)).await;
        busy.store(false, Ordering::Relaxed);
        answered.map(|Ok(answer)| answer)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    // A peer that goes away is its own affair.
    let _ = serving.await;
}
