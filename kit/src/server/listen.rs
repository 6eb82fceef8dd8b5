//! Listeners: TCP and unix sockets.

use std::fs::Permissions;
use std::future::Future;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use windlass_protocol::status::Caller;

/// A listener.
pub trait Accept: Send + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection.
    ///
    /// # Errors
    /// The system's error; the next call may succeed.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The process of the peer, as the kernel reports it; `None` over a network.
    fn caller(_: &Self::Stream) -> Option<Caller> {
        None
    }

    /// Sends a refusal to a connection without room. Never waits.
    fn turn_away(stream: &Self::Stream, word: &[u8]);
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

// === impl Accept ===

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // An answer is one small write, which Nagle's algorithm would only delay.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn turn_away(stream: &TcpStream, word: &[u8]) {
        // A new connection has room for a short text; otherwise it is closed without it.
        drop(stream.try_write(word));
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn caller(stream: &UnixStream) -> Option<Caller> {
        let peer = stream.peer_cred().ok()?;
        // A process in another PID namespace has no id here.
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        Some(Caller { uid: peer.uid(), pid })
    }

    fn turn_away(stream: &UnixStream, word: &[u8]) {
        drop(stream.try_write(word));
    }
}
