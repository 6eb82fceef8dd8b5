//! HTTP/1.1 as exact bytes, so that no library between a test and a peer mends what is wrong.
//!
//! A client that sends what it is told to, and a server that answers as a test says.

use crate::wait::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// What follows them.
    pub body: String,
}

/// What a server was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `PUT`.
    pub method: String,
    /// With what follows a `?`.
    pub path: String,
    /// The request line and the headers.
    pub head: String,
    /// As long as its `Content-Length` says.
    pub body: String,
}

/// A server on a port of its own. It ends with its value.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

/// A request after which the peer closes the connection.
pub fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// An answer.
pub fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// One request on a connection of its own.
pub fn ask(at: impl ToSocketAddrs, method: &str, path: &str, body: &str) -> Answer {
    let text = raw(connect(at), request(method, path, body).as_bytes());
    parse(&text).unwrap_or_else(|| panic!("no answer to {method} {path}: {text:?}"))
}

/// The same, of a peer that may not be there, or hang up.
pub fn try_ask(at: impl ToSocketAddrs, method: &str, path: &str, body: &str) -> Option<Answer> {
    let stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    parse(&raw(stream, request(method, path, body).as_bytes()))
}

/// A connection that does not wait for ever.
pub fn connect(at: impl ToSocketAddrs) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends these bytes and gives whatever comes until the end.
pub fn raw(mut stream: impl Read + Write, bytes: &[u8]) -> String {
    // The peer may answer and hang up before it has read everything.
    let _refused = stream.write_all(bytes);
    rest(stream)
}

/// Whatever comes until the end.
pub fn rest(mut stream: impl Read) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        // A peer that hangs up with bytes unread resets the connection.
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8(text).unwrap(),
    }
}

/// The answer that this text is, if it is one.
pub fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)?.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {head}"));
    Some(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

// === impl Server ===

impl Server {
    /// One that answers each request with these bytes, one after another, and then closes its
    /// connection. No bytes: it closes without an answer.
    pub fn start(answer: impl FnMut(&Request) -> String + Send + 'static) -> Self {
        let answer = Mutex::new(answer);
        Self::talking(move |request, mut stream| {
            let answer = (answer.lock().unwrap())(&request);
            // A client that has left wants no answer.
            let _left = stream.write_all(answer.as_bytes());
        })
    }

    /// One that does as it likes with the connection of each request, at the same time.
    pub fn talking(talk: impl Fn(Request, TcpStream) + Send + Sync + 'static) -> Self {
        let (listener, talk) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(talk));
        let address = listener.local_addr().unwrap();
        let ended = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&ended);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let (mut stream, talk) = (stream.unwrap(), Arc::clone(&talk));
                std::thread::spawn(move || {
                    if let Some(request) = Request::read(&mut stream) {
                        talk(request, stream);
                    }
                });
            }
        });
        Self { address, ended }
    }

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread, which then lets go of its port.
        let _woken = TcpStream::connect(self.address);
    }
}

// === impl Request ===

impl Request {
    /// The request on a connection, or nothing if the client leaves in the middle of it.
    fn read(stream: &mut TcpStream) -> Option<Self> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if let Some(request) = Self::parse(&text) {
                return Some(request);
            }
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut line = head.split(' ');
        let (method, path) = (line.next()?.to_owned(), line.next()?.to_owned());
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        let body = body.get(..length.unwrap_or(0))?.to_owned();
        Some(Self { method, path, head: head.to_owned(), body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_what_it_is_asked() {
        let server = Server::start(|asked| match asked.path.as_str() {
            "/gone" => String::new(),
            path => answer(404, &format!("{} {path} {}", asked.method, asked.body)),
        });
        let at = server.address();
        let told = ask(at, "PUT", "/a?b", "body");
        assert_eq!((told.status, told.body.as_str()), (404, "PUT /a?b body"));
        assert_eq!(raw(connect(at), request("GET", "/gone", "").as_bytes()), "");
        drop(server);
        crate::wait::until("the port is free", || TcpListener::bind(at).is_ok());
    }
}
