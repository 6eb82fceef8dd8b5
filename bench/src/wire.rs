//! As little HTTP as a benchmark needs: one connection, one request after another, with TLS or without.
//!
//! Both sides of a comparison are asked through this, so what it costs is in both figures.

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// No answer that is asked for here is longer.
const LONGEST: usize = 2 << 20;

/// A way to a server.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    /// `None`: without TLS.
    pub(crate) tls: Option<TlsConnector>,
}

/// A connection that stays open.
pub(crate) struct Line {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

// === impl Line ===

impl Line {
    /// Without TLS.
    pub(crate) async fn to(address: SocketAddr) -> Result<Self> {
        Self::by(&Way { address, tls: None }).await
    }

    /// After its handshake, if there is one.
    pub(crate) async fn by(way: &Way) -> Result<Self> {
        let stream = TcpStream::connect(way.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(way.address.ip().into());
        let stream: Box<dyn Stream> = match &way.tls {
            Some(tls) => Box::new(tls.connect(name, stream).await?),
            None => Box::new(stream),
        };
        Ok(Self { stream, read: Vec::with_capacity(4096) })
    }

    /// Sends a request that was made with [`request`], and reads its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.read.clear();
        loop {
            if let Some(answer) = whole(&self.read)? {
                return Ok(answer);
            }
            ensure!(self.read.len() < LONGEST, "an answer of more than {LONGEST} bytes");
            let got = self.stream.read_buf(&mut self.read).await?;
            ensure!(got > 0, "the peer hung up");
        }
    }
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    request_with(method, path, "", body)
}

/// The same with these headers, each of which ends its line.
pub(crate) fn request_with(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The answer that these bytes are, once they are all there.
fn whole(bytes: &[u8]) -> Result<Option<Answer>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("no status: {head}"))?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    let length = length.with_context(|| format!("no content-length: {head}"))??;
    let body = &bytes[end + 4..];
    Ok((body.len() >= length).then(|| Answer { status, body: body[..length].to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_once_its_body_is() {
        let text = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc";
        for end in 0..text.len() {
            assert_eq!(whole(&text[..end]).unwrap(), None);
        }
        let answer = Answer { status: 404, body: b"abc".to_vec() };
        assert_eq!(whole(text).unwrap(), Some(answer));
        assert!(whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
