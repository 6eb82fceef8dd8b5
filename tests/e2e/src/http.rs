//! The least of an HTTP client: one request, one bounded answer, no dependency on the client
//! that is under test.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(8);
const MOST: u64 = 8 << 20;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// `GET path` over a unix socket.
pub(crate) async fn get_unix(socket: &Path, path: &str) -> Result<Answer> {
    let talk = async { talk(UnixStream::connect(socket).await?, path, "").await };
    timeout(LIMIT, talk).await.with_context(|| format!("no answer to GET {path}"))?
}

/// `GET path` over TCP.
///
/// # Errors
/// If there is no whole answer in time.
pub async fn get_tcp(at: SocketAddr, path: &str) -> Result<Answer> {
    let talk = async { talk(TcpStream::connect(at).await?, path, "").await };
    timeout(LIMIT, talk).await.with_context(|| format!("no answer to GET {path} at {at}"))?
}

/// The state that a program dumps, which wants a body that says nothing.
pub(crate) async fn dump(at: SocketAddr) -> Result<Value> {
    let talk = async { talk(TcpStream::connect(at).await?, "/", "{}").await };
    let answer = timeout(LIMIT, talk).await.with_context(|| format!("no state of {at}"))??;
    ensure!(answer.status == 200, "the state of {at}: {} {}", answer.status, answer.body);
    serde_json::from_str(&answer.body).with_context(|| answer.body.clone())
}

async fn talk(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    body: &str,
) -> Result<Answer> {
    let length = body.len();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: e2e\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.take(MOST).read_to_end(&mut bytes).await?;
    parse(&String::from_utf8(bytes)?)
}

fn parse(text: &str) -> Result<Answer> {
    let (head, body) = text.split_once("\r\n\r\n").context("an answer without a head")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?;
    for line in lines {
        let (name, value) = line.split_once(':').context("a header without a colon")?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let length: usize = value.trim().parse()?;
                ensure!(body.len() == length, "{} of {length} bytes", body.len());
            }
            "transfer-encoding" => bail!("an answer in pieces"),
            _ => {}
        }
    }
    Ok(Answer { status: status.parse()?, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_off_is_an_error() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(parse(whole).unwrap(), Answer { status: 200, body: "ok".to_owned() });
        assert!(parse(&whole[..whole.len() - 1]).is_err());
        assert!(parse("HTTP/1.1 200 OK\r\n").is_err());
    }
}
