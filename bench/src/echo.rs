//! A bare axum server that says back what it is told: what a permit is compared with.
//!
//! It runs as a process of its own, as the plugin does, and prints where it listens. With TLS it shows the plugin's
//! certificate.

use crate::cores;
use crate::tls::{self, Files};
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::serve::Listener;
use std::io::{self, BufRead, BufReader, Write, stdout};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use windlass_lab::leash;

/// The argument that makes a process of this program the server.
pub(crate) const ARGUMENT: &str = "echo";

/// A server in a process of its own. It ends with this value.
pub(crate) struct Echo {
    process: Child,
    pub(crate) address: SocketAddr,
}

// === impl Echo ===

impl Echo {
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(None)
    }

    /// One that shows a certificate, if there is one.
    pub(crate) fn start_with(files: Option<&Files>) -> Result<Self> {
        let itself = std::env::current_exe()?;
        let words: Vec<&Path> =
            cores::server().iter().map(Path::new).chain([itself.as_path()]).collect();
        let mut command = leash::command(words[0]);
        command.args(&words[1..]).arg(ARGUMENT).stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(Files { certificate, key, .. }) = files {
            command.arg(certificate).arg(key);
        }
        let mut process = leash::spawn(command)?;
        let mut line = String::new();
        let out = process.stdout.take().context("the echo has no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("no address: {line:?}"))?;
        Ok(Self { process, address })
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// Accepts connections over TLS, one handshake after another.
struct OverTls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

// === impl OverTls ===

impl Listener for OverTls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, at) = Listener::accept(&mut self.tcp).await;
            // An answer is one small write, as of the plugin. A client whose handshake fails says so itself.
            let _delays = stream.set_nodelay(true);
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, at);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// Serves until it is killed; with the files of a certificate and its key, over TLS.
pub(crate) async fn serve(files: &[String]) -> Result<()> {
    let tcp = TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut out = stdout();
    writeln!(out, "{}", tcp.local_addr()?)?;
    out.flush()?;
    let router = Router::new().fallback(|body: Bytes| async move { body });
    match files {
        [certificate, key] => {
            let acceptor = tls::acceptor(Path::new(certificate), Path::new(key))?;
            axum::serve(OverTls { tcp, acceptor }, router).await?;
        }
        _ => axum::serve(tcp, router).await?,
    }
    Ok(())
}
