//! A bare axum server that says back what it is told: what a permit is compared with.
//!
//! It runs as a process of its own, as the plugin does, and prints where it listens.

use crate::cores;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use std::io::{BufRead, BufReader, Write, stdout};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
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
        let itself = std::env::current_exe()?;
        let words: Vec<&Path> =
            cores::server().iter().map(Path::new).chain([itself.as_path()]).collect();
        let mut command = leash::command(words[0]);
        command.args(&words[1..]).arg(ARGUMENT).stdin(Stdio::null()).stdout(Stdio::piped());
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

/// Serves until it is killed.
pub(crate) async fn serve() -> Result<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut out = stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let router = Router::new().fallback(|body: Bytes| async move { body });
    Ok(axum::serve(listener, router).await?)
}
