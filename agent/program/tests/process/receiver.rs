//! A server that takes whatever it is sent, and answers as it was told: a receiver of billing
//! events, or a plugin that permits nothing.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use windlass_testkit::http::{self, Server};

/// A receiver.
pub(crate) struct Receiver {
    server: Server,
    heard: Arc<Mutex<Vec<String>>>,
    says: Arc<Mutex<(u16, &'static str)>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let says = Arc::new(Mutex::new((200, "")));
        let (kept, said) = (Arc::clone(&heard), Arc::clone(&says));
        let server = Server::start(move |request| {
            kept.lock().unwrap().push(request.body.clone());
            let (status, words) = *said.lock().unwrap();
            http::answer(status, words)
        });
        Self { server, heard, says }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
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
