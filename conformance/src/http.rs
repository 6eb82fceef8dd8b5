//! HTTP/1.1 with nothing between the kit and the wire: one request per connection.
//!
//! A client that sends exactly what it is told to, and a server whose answers are put together
//! by a function, which may also say nothing or hang up.

mod server;

pub use server::{Reply, Server};

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// More than this is read of nobody, in bytes.
const LARGEST: usize = 1024 * 1024;

/// A request, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET` and so on.
    pub method: String,
    /// With the query, if there is one.
    pub path: String,
    /// Everything before the body.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Everything before the body.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What was asked.
    pub asked: String,
    /// What happened.
    pub why: String,
}

/// Asks once; all of it within `limit`.
///
/// # Errors
/// If there is no whole answer.
pub fn ask(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &[u8],
    limit: Duration,
) -> Result<Answer, Lost> {
    let lost = |why: String| Lost { asked: format!("{method} {path}"), why };
    exchange(to, &request(method, path, body), limit)
        .map_err(|error| lost(error.to_string()))?
        .ok_or_else(|| lost("the connection ended without an answer".to_owned()))
}

/// The bytes of a request.
pub fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nHost: conformance\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The bytes of an answer.
pub fn answer(status: u16, body: &[u8]) -> Vec<u8> {
    let kind = if status == 200 { "application/json" } else { "text/plain; charset=utf-8" };
    let mut bytes = format!(
        "HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Sends these bytes and reads one answer; `None` if the connection ends without one.
///
/// # Errors
/// If there is no connection, or no whole answer within `limit`.
pub fn exchange(to: SocketAddr, bytes: &[u8], limit: Duration) -> io::Result<Option<Answer>> {
    let until = Instant::now() + limit;
    let mut stream = TcpStream::connect_timeout(&to, limit)?;
    stream.set_write_timeout(Some(limit))?;
    // The peer may answer and hang up before it has read everything.
    let _ = stream.write_all(bytes);
    read_answer(&mut stream, until)
}

/// Reads one answer; `None` if the connection ends without a whole one.
///
/// # Errors
/// If it is not there in time.
pub fn read_answer(stream: &mut TcpStream, until: Instant) -> io::Result<Option<Answer>> {
    let Some((head, body)) = read_message(stream, until)? else { return Ok(None) };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(status.map(|status| Answer { status, head, body }))
}

/// Reads one request; `None` if the connection ends without a whole one.
pub(crate) fn read_request(stream: &mut TcpStream, until: Instant) -> io::Result<Option<Request>> {
    let Some((head, body)) = read_message(stream, until)? else { return Ok(None) };
    let mut words = head.split(' ');
    let (method, path) = (words.next(), words.next());
    let named = method.zip(path);
    Ok(named
        .map(|(method, path)| (method.to_owned(), path.to_owned()))
        .map(|(method, path)| Request { method, path, head: head.clone(), body }))
}

/// Head and body.
fn read_message(stream: &mut TcpStream, until: Instant) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(message) = whole(&bytes, false) {
            return Ok(Some(message));
        }
        if bytes.len() > LARGEST || !read_some(stream, &mut bytes, until)? {
            return Ok(whole(&bytes, true));
        }
    }
}

/// Whether there was more.
fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>, until: Instant) -> io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(late());
    }
    stream.set_read_timeout(Some(left))?;
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(0) => Ok(false),
        Ok(length) => {
            bytes.extend_from_slice(&buffer[..length]);
            Ok(true)
        }
        Err(error) if is_late(&error) => Err(late()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        // A peer that has said enough may reset the connection.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no whole message in time")
}

/// The message, if it is all there; `ended`: no more comes, so a body of unknown length ends.
fn whole(bytes: &[u8], ended: bool) -> Option<(String, Vec<u8>)> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let body = &bytes[at + 4..];
    if header(&head, "transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        return chunks(body).map(|body| (head, body));
    }
    let length = header(&head, "content-length").and_then(|value| value.parse::<usize>().ok());
    let request = !head.starts_with("HTTP/");
    match length {
        Some(length) if body.len() >= length => Some((head, body[..length].to_vec())),
        Some(_) => None,
        None if request || ended => Some((head, body.to_vec())),
        None => None,
    }
}

/// A body in chunks, if its last one is there.
fn chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[line + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

/// A line of the head, by its name.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

// === impl Answer ===

impl Answer {
    /// Its body, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A line of its head.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

// === impl Request ===

impl Request {
    /// Its body, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no answer: {}", self.asked, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_when_its_length_is_there() {
        let said = request("PUT", "/x", b"{}");
        assert!(whole(&said[..said.len() - 1], true).is_none());
        let (head, body) = whole(&said, false).expect("whole");
        assert_eq!((header(&head, "content-length"), body), (Some("2"), b"{}".to_vec()));
        let endless = b"HTTP/1.1 200 OK\r\n\r\nabc";
        assert!(whole(endless, false).is_none());
        assert_eq!(whole(endless, true).expect("ended").1, b"abc");
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        assert_eq!(whole(chunked, false).expect("whole").1, b"abcd");
        assert!(whole(&chunked[..chunked.len() - 8], false).is_none());
    }
}
