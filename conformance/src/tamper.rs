//! What stands between the kit and a component, and breaks it on purpose.
//!
//! A kit that finds nothing proves nothing. So the tests put this between: a listener that
//! passes requests on, and changes what a broken component would have done otherwise. The
//! change is a function from the request, and a way to pass it on, to the reply.

use crate::http::{Answer, Reply, Request, Server, answer, exchange};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Longer than any answer takes.
const LIMIT: Duration = Duration::from_secs(15);

/// Passes a request on to the component; its answer, or `None`.
pub type Forward<'a> = &'a dyn Fn(&Request) -> Option<Answer>;

/// Stands on a port of the loopback before a component. It ends with this value.
#[derive(Debug)]
pub struct Tamper(Server);

// === impl Tamper ===

impl Tamper {
    /// Stands before `target`.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn before(
        target: SocketAddr,
        change: impl Fn(Request, Forward<'_>) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let forward = move |request: &Request| pass(target, request);
        let server = Server::start(IpAddr::V4(Ipv4Addr::LOCALHOST), move |request| {
            change(request, &forward)
        })?;
        Ok(Self(server))
    }

    /// Where the kit is to look for the component.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.0.port()))
    }
}

/// What the component answered, as a reply; hangs up where it did.
pub fn reply(answered: Option<Answer>) -> Reply {
    match answered {
        Some(Answer { status, body, .. }) => Reply::Bytes(answer(status, &body)),
        None => Reply::HangUp,
    }
}

/// The head as it came, so that what is wrong with a request reaches the component.
fn pass(target: SocketAddr, request: &Request) -> Option<Answer> {
    let line = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    let length = request.body.len();
    let rest = format!("Host: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let mut bytes = (line + &rest).into_bytes();
    bytes.extend_from_slice(&request.body);
    exchange(target, &bytes, LIMIT).ok().flatten()
}
