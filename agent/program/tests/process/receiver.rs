//! A server that takes whatever it is sent, and answers as it was told: a receiver of billing
//! events, or a plugin that permits nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A receiver. Its thread ends with the test.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    says: Arc<Mutex<(u16, &'static str)>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let says = Arc::new(Mutex::new((200, "")));
        let (kept, said) = (Arc::clone(&heard), Arc::clone(&says));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                // Who hangs up sends it again.
                let said = *said.lock().unwrap();
                if let Ok(body) = client.and_then(|client| answer(client, said)) {
                    kept.lock().unwrap().push(body);
                }
            }
        });
        Self { address, heard, says }
    }

    /// From here on it answers this.
    pub(crate) fn say(&self, status: u16, words: &'static str) {
        *self.says.lock().unwrap() = (status, words);
    }

    /// The bodies of all requests so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn answer(mut client: TcpStream, says: (u16, &str)) -> std::io::Result<String> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let ((status, words), length) = (says, says.1.len());
    let head = format!("HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close");
    write!(client, "{head}\r\n\r\n{words}")?;
    Ok(String::from_utf8(body).unwrap())
}
