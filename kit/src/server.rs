//! HTTP/1.1 with every limit set, over TCP and unix sockets.
//!
//! A client may be slow, greedy, broken or hostile. So there is a limit on
//! connections, on the time and size of a request's head, on the time and size of its body,
//! on how long an answer may take, and on how long a connection may live. Where all connections are
//! in use, the one that idles longest between requests makes room for the next. A request's body
//! is read here, whole, before the router sees it: handlers get bytes and wait for no client.
//! Each refusal says in words which limit it was. A panic in a handler is one 500. A request over
//! a unix socket carries its [`Caller`](windlass_protocol::status::Caller) as an extension, and one over TLS its [`Peer`].

mod connection;
mod connections;
mod deadline;
#[cfg(feature = "tls")]
mod handshake;
mod limits;
mod listen;
mod service;
#[cfg(feature = "tls")]
mod subject;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "tls")]
pub use handshake::TlsListener;
pub use limits::{Counts, Handshake, Limits, Refusal};
pub use listen::{Accept, Peer, Who, bind_unix};
pub use service::{HangUp, OpenSince, Service};
#[cfg(feature = "tls")]
pub use tls::{Reloads, Tls, TlsError, TlsFile, TlsFiles, TlsPem, TlsPlaces};

use connections::{Connections, LEAVES_WITHIN};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// After an accept that failed for want of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then lets requests under way finish.
///
/// # Errors
/// None while `stop` is not cancelled; a failing accept is logged and tried again.
pub async fn serve<L: Accept>(
    listener: L,
    service: impl Service,
    limits: Limits,
    stop: CancellationToken,
) -> Result<(), io::Error> {
    let limits = Arc::new(limits);
    let (open, room) = (Connections::default(), Arc::new(Semaphore::new(limits.connections)));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let permit = room.clone().try_acquire_owned().ok();
        if permit.is_none() && !open.make_room() {
            limits.counts.refused(Refusal::Crowded);
            L::turn_away(&stream, CROWDED.as_bytes());
            continue;
        }
        let (room, open) = (room.clone(), open.clone());
        let (service, limits, stop) = (service.clone(), limits.clone(), stop.clone());
        connections.spawn(async move {
            let leaves = timeout(LEAVES_WITHIN.saturating_mul(2), room.acquire_owned());
            let permit = match permit {
                Some(permit) => Some(permit),
                None => leaves.await.ok().and_then(Result::ok),
            };
            let Some(permit) = permit else {
                limits.counts.refused(Refusal::Crowded);
                return L::turn_away(&stream, CROWDED.as_bytes());
            };
            // A connection in its handshake is idle: it makes room for the next, and holds up nobody.
            let slot = open.enter(&stop);
            let opened = tokio::select! {
                biased;
                opened = L::open(stream, limits.head_time) => opened,
                () = slot.asked_to_leave() => return,
            };
            match opened {
                Ok(stream) => {
                    let who = L::who(&stream);
                    connection::run(stream, who, slot, service, limits, stop).await;
                }
                Err(refusal) => limits.counts.refused(refusal),
            }
            drop(permit);
        });
    }
    // No longer than one whole request: then what is left is cut by the drop.
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.request_time, all).await.is_err() {
        debug!("connections cut at the end of a server");
    }
    Ok(())
}

/// Whole, as it cannot be made by the server that it speaks for.
const CROWDED: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 22\r\nconnection: close\r\n\r\ntoo many connections\r\n";
