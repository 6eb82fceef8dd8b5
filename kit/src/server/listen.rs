//! Listeners: TCP and unix sockets.

use super::limits::Refusal;
use http::Extensions;
use std::fs::Permissions;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use windlass_protocol::status::Caller;

/// A listener.
pub trait Accept: Send + 'static {
    /// One connection, as it is accepted.
    type Stream: Send + 'static;
    /// One connection, over which requests come.
    type Open: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection.
    ///
    /// # Errors
    /// The system's error; the next call may succeed.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Makes a connection ready for requests. What takes a peer's time is done here, off the loop that accepts.
    ///
    /// # Errors
    /// Why the peer is refused; it was told as far as it understands.
    fn open(
        stream: Self::Stream,
        within: Duration,
    ) -> impl Future<Output = Result<Self::Open, Refusal>> + Send;

    /// Who the peer is.
    fn who(_: &Self::Open) -> Who {
        Who::Unknown
    }

    /// Sends a refusal to a connection without room. Never waits.
    fn turn_away(stream: &Self::Stream, word: &[u8]);
}

/// Who is at the other end of a connection, as far as its listener can tell.
#[derive(Clone, Debug)]
pub enum Who {
    /// A peer over a network, of which nothing else is known.
    Unknown,
    /// A process of this machine, as the kernel reports it.
    Process(Caller),
    /// A peer over TLS.
    Peer(Peer),
}

/// A peer over TLS: an extension of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it calls from.
    pub address: SocketAddr,
    /// The common name of its certificate, which the listener's CA signed and which was valid when the connection
    /// began; empty if the certificate has none. `None`: it showed no certificate.
    pub common_name: Option<Arc<str>>,
}

/// Listens at `path`, and replaces the socket of a dead process.
///
/// # Errors
/// `path` is not a socket, another process listens there, or the system refuses.
pub async fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there, and no socket"));
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there"));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(listener)
}

// === impl Who ===

impl Who {
    /// Has a request say who sent it.
    pub(super) fn sign(&self, extensions: &mut Extensions) {
        match self {
            Self::Unknown => {}
            Self::Process(caller) => drop(extensions.insert(*caller)),
            Self::Peer(peer) => drop(extensions.insert(peer.clone())),
        }
    }
}

// === impl Accept ===

impl Accept for TcpListener {
    type Stream = TcpStream;
    type Open = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // An answer is one small write, which Nagle's algorithm would only delay.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn open(stream: TcpStream, _: Duration) -> Result<TcpStream, Refusal> {
        Ok(stream)
    }

    fn turn_away(stream: &TcpStream, word: &[u8]) {
        // A new connection has room for a short text; otherwise it is closed without it.
        drop(stream.try_write(word));
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;
    type Open = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    async fn open(stream: UnixStream, _: Duration) -> Result<UnixStream, Refusal> {
        Ok(stream)
    }

    fn who(stream: &UnixStream) -> Who {
        let Ok(peer) = stream.peer_cred() else { return Who::Unknown };
        // A process in another PID namespace has no id here.
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        Who::Process(Caller { uid: peer.uid(), pid })
    }

    fn turn_away(stream: &UnixStream, word: &[u8]) {
        drop(stream.try_write(word));
    }
}
