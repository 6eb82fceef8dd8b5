//! A relay before a listener: it writes down what is asked of it, and can be cut.
//!
//! While it is cut, it takes in what is said and passes nothing on, either way: who calls gets no
//! answer, as from a host that cannot be reached. A connection that was open then is ended once
//! the way is whole again. A trap cuts it by itself, right behind a request that it waits for.

use anyhow::Result;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes that are passed on at once.
const PIECE: usize = 16 << 10;

/// Longer first lines of a request are not looked for.
const LINE: usize = 512;

/// A relay.
pub(crate) struct Relay {
    at: SocketAddr,
    cut: watch::Sender<bool>,
    requests: Requests,
    trap: Trap,
    _tasks: JoinSet<()>,
}

/// A request that was passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Just before it was passed on.
    pub(crate) at: Instant,
    /// What it asks for.
    pub(crate) path: String,
    /// The status of its answer, once that was passed back.
    pub(crate) status: Option<u16>,
}

type Requests = Arc<Mutex<Vec<Request>>>;

/// A path, and words of the body.
type Trap = Arc<Mutex<Option<(&'static str, String)>>>;

/// One connection. Requests follow each other's answers.
#[derive(Clone)]
struct Pair {
    requests: Requests,
    trap: Trap,
    cut: watch::Sender<bool>,
    /// What came since the last answer, as far as a request's first line is not over.
    line: Option<Vec<u8>>,
    /// The request that is not answered yet, by its place.
    open: Option<usize>,
}

// === impl Relay ===

impl Relay {
    /// Listens on a free loopback port for who wants to speak to what `target` makes of that port.
    pub(crate) async fn start(target: impl Fn(u16) -> SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let at = listener.local_addr()?;
        let (cut, is_cut) = watch::channel(false);
        let (requests, trap) = (Requests::default(), Trap::default());
        let pair = Pair {
            requests: Arc::clone(&requests),
            trap: Arc::clone(&trap),
            cut: cut.clone(),
            line: Some(Vec::new()),
            open: None,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, target(at.port()), is_cut, pair));
        Ok(Self { at, cut, requests, trap, _tasks: tasks })
    }

    /// Where it listens.
    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Cuts the way, or makes it whole.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }

    /// Passes on one request of this path that has these words in it, and cuts the way before its answer.
    pub(crate) fn trap(&self, path: &'static str, words: &str) {
        *self.trap.lock().unwrap_or_else(PoisonError::into_inner) = Some((path, words.to_owned()));
    }

    /// Whether the way is cut.
    pub(crate) fn is_cut(&self) -> bool {
        *self.cut.borrow()
    }

    /// What was passed on.
    pub(crate) fn requests(&self) -> Vec<Request> {
        noted(&self.requests).clone()
    }
}

async fn serve(listener: TcpListener, target: SocketAddr, cut: watch::Receiver<bool>, pair: Pair) {
    let mut pairs = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        while pairs.try_join_next().is_some() {}
        let (pair, cut) = (pair.clone(), cut.clone());
        pairs.spawn(async move {
            // Either side may hang up at any time: that ends the pair, and closes the other.
            let _ended = pair.run(client, target, cut).await;
        });
    }
}

// === impl Pair ===

impl Pair {
    async fn run(
        mut self,
        mut client: TcpStream,
        target: SocketAddr,
        mut cut: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        if *cut.borrow_and_update() {
            return lose(&mut client, cut).await;
        }
        let mut server = TcpStream::connect(target).await?;
        let (mut asked, mut answered) = (vec![0; PIECE], vec![0; PIECE]);
        loop {
            tokio::select! {
                biased;
                changed = cut.changed() => {
                    changed.map_err(std::io::Error::other)?;
                    return lose(&mut client, cut).await;
                }
                length = client.read(&mut asked) => {
                    let Some(piece) = asked.get(..length?).filter(|piece| !piece.is_empty()) else {
                        return Ok(());
                    };
                    let trapped = self.asked(piece);
                    server.write_all(piece).await?;
                    if trapped {
                        self.cut.send_replace(true);
                    }
                }
                length = server.read(&mut answered) => {
                    let Some(piece) = answered.get(..length?).filter(|piece| !piece.is_empty())
                    else {
                        return Ok(());
                    };
                    self.answered(piece);
                    client.write_all(piece).await?;
                }
            }
        }
    }

    /// Whether what was asked is what the trap waits for.
    fn asked(&mut self, piece: &[u8]) -> bool {
        let Some(line) = &mut self.line else { return false };
        line.extend_from_slice(piece);
        let end = line.windows(2).position(|two| two == b"\r\n");
        if end.is_none() && line.len() < LINE {
            return false;
        }
        let first = String::from_utf8_lossy(&line[..end.unwrap_or(LINE)]).into_owned();
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let trapped = is_trapped(&self.trap, &path, line);
        let mut requests = noted(&self.requests);
        self.open = Some(requests.len());
        requests.push(Request { at: Instant::now(), path, status: None });
        self.line = None;
        trapped
    }

    fn answered(&mut self, piece: &[u8]) {
        if let Some(place) = self.open.take() {
            let status = piece.split(|byte| *byte == b' ').nth(1).map(String::from_utf8_lossy);
            noted(&self.requests)[place].status = status.and_then(|status| status.parse().ok());
        }
        self.line = Some(Vec::new());
    }
}

/// Takes in what is said, until the way is whole.
async fn lose(client: &mut TcpStream, mut cut: watch::Receiver<bool>) -> std::io::Result<()> {
    let mut lost = vec![0; PIECE];
    loop {
        tokio::select! {
            whole = cut.wait_for(|cut| !cut) => {
                return whole.map(drop).map_err(std::io::Error::other);
            }
            length = client.read(&mut lost) => if length? == 0 { return Ok(()) },
        }
    }
}

/// Whether a request is what the trap waits for. One that is small comes in one piece, with its body.
fn is_trapped(trap: &Mutex<Option<(&'static str, String)>>, path: &str, request: &[u8]) -> bool {
    let mut trap = trap.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(request);
    trap.take_if(|(wanted, words)| *wanted == path && text.contains(&**words)).is_some()
}

fn noted(requests: &Mutex<Vec<Request>>) -> MutexGuard<'_, Vec<Request>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::get_tcp;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn what_is_asked_is_written_down_and_nothing_passes_a_cut() {
        let server = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let target = server.local_addr().unwrap();
        let relay = Relay::start(|_| target).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                let mut head = [0; 16];
                stream.read_exact(&mut head).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            }
        });
        assert_eq!(get_tcp(relay.at(), "/resume").await.unwrap().status, 200);
        let paths = || relay.requests().iter().map(|r| r.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(), ["/resume"]);
        assert_eq!(relay.requests()[0].status, Some(200));

        relay.cut(true);
        let answer = get_tcp(relay.at(), "/suspend");
        assert!(timeout(Duration::from_millis(200), answer).await.is_err(), "it is cut");
        assert_eq!(paths(), ["/resume"]);
        relay.cut(false);
        assert_eq!(get_tcp(relay.at(), "/id").await.unwrap().status, 200);
        assert_eq!(paths(), ["/resume", "/id"]);

        relay.trap("/downscale", "");
        let answer = get_tcp(relay.at(), "/downscale");
        assert!(timeout(Duration::from_millis(200), answer).await.is_err(), "its answer is lost");
        assert!(relay.is_cut());
        assert_eq!(paths(), ["/resume", "/id", "/downscale"]);
    }
}
