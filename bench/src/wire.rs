//! As little HTTP as a benchmark needs: one connection, one request after another.
//!
//! Both sides of a comparison are asked through this, so what it costs is in both figures.

use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No answer that is asked for here is longer.
const LONGEST: usize = 2 << 20;

/// A connection that stays open.
pub(crate) struct Line {
    stream: TcpStream,
    read: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

// === impl Line ===

impl Line {
    pub(crate) async fn to(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(4096) })
    }

    /// Sends a request that was made with [`request`], and reads its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request).await?;
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
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: {length}\r\n\r\n{body}")
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
