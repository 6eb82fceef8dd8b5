//! Connections in memory, and time that passes when everybody waits.
//!
//! Nothing here touches a socket, and the clock is tokio's, paused: a peer that stalls costs no
//! time, and the same input does the same each time.

use std::future::{Future, pending};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use windlass_kit::server::{Accept, Counts, Limits, Refusal, Service, serve};

/// More than an input and its answers have.
const ROOM: usize = 1 << 20;

/// Longer than any connection lives.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// A listener that one connection comes from.
struct Once(Mutex<Option<DuplexStream>>);

// === impl Once ===

impl Accept for Once {
    type Stream = DuplexStream;
    type Open = DuplexStream;

    async fn accept(&self) -> io::Result<DuplexStream> {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match stream {
            Some(stream) => Ok(stream),
            None => pending().await,
        }
    }

    async fn open(stream: DuplexStream, _: Duration) -> Result<DuplexStream, Refusal> {
        Ok(stream)
    }

    fn turn_away(_: &DuplexStream, _: &[u8]) {}
}

/// Runs something to its end, in time of its own.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without sockets needs nothing of the system");
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// Both ends of a connection.
pub(crate) fn pipe() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(ROOM)
}

/// What a peer hears that says this to `server` and waits for the end.
pub(crate) async fn heard<F: Future<Output = ()>>(
    said: &[u8],
    server: impl FnOnce(DuplexStream) -> F,
) -> Vec<u8> {
    let (mut ours, theirs) = pipe();
    ours.write_all(said).await.expect("there is room for all of it");
    let listen = async {
        let mut heard = Vec::new();
        // A connection that breaks has said what it had to say.
        let _ = ours.read_to_end(&mut heard).await;
        heard
    };
    let both = async { tokio::join!(server(theirs), listen).1 };
    tokio::time::timeout(FOR_EVER, both).await.expect("every connection ends")
}

/// The same, where this answers behind the kit's server.
pub(crate) async fn heard_of(service: impl Service, said: &[u8]) -> Vec<u8> {
    let stop = CancellationToken::new();
    heard(said, |stream| {
        let limits = Limits::small(Counts::default());
        let longest = limits.connection_time + limits.request_time;
        let once = Once(Mutex::new(Some(stream)));
        let serving = serve(once, service, limits, stop.clone());
        async move {
            let end = async {
                tokio::time::sleep(longest).await;
                stop.cancel();
            };
            let (served, ()) = tokio::join!(serving, end);
            served.expect("a server ends when it is told to");
        }
    })
    .await
}

/// The answers to what was said: each a status and a body. Of one to HEAD nothing tells where it
/// ends; there they are not looked at.
///
/// # Panics
/// If it is not a sequence of whole answers, or one of them is of a fault of ours.
pub(crate) fn answers(said: &[u8], heard: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let (mut rest, mut answers) = (heard, Vec::new());
    if said.windows(4).any(|word| word == b"HEAD") {
        return answers;
    }
    while !rest.is_empty() {
        let end = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a whole head");
        let head = String::from_utf8_lossy(&rest[..end]);
        let mut words = head.split(' ');
        assert!(words.next().is_some_and(|word| word.starts_with("HTTP/1.")), "{head}");
        let status = words.next().and_then(|word| word.parse().ok()).expect("a status");
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        // An invitation to go on has no length.
        let after = &rest[end + 4..];
        let (body, next) = after.split_at_checked(length.unwrap_or(0)).expect("a whole body");
        assert_ne!(status, 500, "{head}: {}", String::from_utf8_lossy(body));
        answers.push((status, body.to_vec()));
        rest = next;
    }
    answers
}
