//! The server over real loopback and unix sockets, against peers that are slow, greedy or
//! broken, and the client against servers that are.
#![expect(clippy::unwrap_used, reason = "tests")]

use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use http::Method;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use windlass_kit::client::{Address, Ask, ClientError, Pool, ask};
use windlass_kit::server::{Counts, HangUp, Limits, Refusal, bind_unix, serve};
use windlass_kit::tasks::Tasks;
use windlass_protocol::status::Caller;
use windlass_testkit::Folder;
use windlass_testkit::wait::{PATIENCE, until_async};

#[tokio::test]
async fn a_head_that_comes_too_slowly_is_refused_in_words() {
    let server = Server::start(quick()).await;
    let answer = server.send(b"GET /hello HTTP/1.1\r\nhost: x\r\nx-sl").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("the request's head did not arrive within 0.2s"), "{answer}");
    assert_eq!(server.counts.of(Refusal::HeadTime), 1);
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_refused_in_words() {
    let server = Server::start(quick()).await;
    let answer =
        server.send(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("the request's body did not arrive within 0.4s"), "{answer}");
    assert_eq!(server.counts.of(Refusal::BodyTime), 1);
}

#[tokio::test]
async fn a_service_may_end_the_connection_in_place_of_an_answer() {
    let server = Server::start(quick()).await;
    let request = b"POST /hang-up HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(server.send(request).await, "");
    let answer = server.send(b"GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn a_body_too_large_is_refused_declared_or_not() {
    let server = Server::start(quick()).await;
    let declared = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n";
    let mut chunked =
        b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n7000\r\n".to_vec();
    chunked.extend([b'x'; 0x7000]);
    for request in [&declared[..], &chunked] {
        let answer = server.send(request).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("larger than 16384 bytes"), "{answer}");
    }
    assert_eq!(server.counts.of(Refusal::BodySize), 2);
    let largest = Ask::new(Method::POST, "/echo", vec![b'x'; 16 * 1024]).within(PATIENCE);
    let answer = ask(&Address::Tcp(server.address), largest).await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 16 * 1024));
}

#[tokio::test]
async fn hostile_heads_get_an_answer_and_leave_the_server_well() {
    let server = Server::start(quick()).await;
    let long_line = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(100_000));
    let long_header = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(2_000));
    for (request, status) in [
        (long_line.as_bytes(), "431"),
        (long_header.as_bytes(), "431"),
        (many.as_bytes(), "431"),
        (b"NONSENSE\r\n\r\n", "400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello tls\r\n\r\n", "400"),
        (b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", "400"),
        (b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "400"),
        (b"BREW /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "405"),
    ] {
        let answer = server.send(request).await;
        let start = String::from_utf8_lossy(&request[..20.min(request.len())]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{start}: {answer}");
    }
    assert_eq!(server.get("/hello").await, (200, "hello".to_owned()));
    let long = format!(
        "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: {}\r\n\r\n",
        "a".repeat(12 * 1024)
    );
    let answer = server.send(long.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(server.counts.of(Refusal::HeadTime), 0, "none of them was slow");
}

#[tokio::test]
async fn who_is_asked_reads_its_own_address_as_the_host() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 1024];
        let length = stream.read(&mut head).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    };
    let asked = Ask::new(Method::GET, "/hello", "");
    let to = Address::Tcp(address);
    let (answer, head) = tokio::join!(ask(&to, asked), server);
    assert_eq!(answer.unwrap().status, 200);
    assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_the_next_after_it_is_served() {
    let server = Server::start(Limits { connections: 1, request_time: PATIENCE, ..quick() }).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(b"GET /held HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    // It is being answered.
    HELD.notified().await;
    let answer = server.send(b"").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("too many connections"));
    assert_eq!(server.counts.of(Refusal::Crowded), 1);
    drop(first);
    until_async("there is room", async || server.get("/hello").await.0 == 200).await;
}

#[tokio::test]
async fn connections_that_idle_longest_make_room() {
    let server = Server::start(Limits { connections: 2, head_time: PATIENCE, ..quick() }).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        kept.push(Keeping::connect(&server).await);
        kept.last_mut().unwrap().ask().await.unwrap();
    }
    // The first asks again: the second idles longer.
    kept[0].ask().await.unwrap();
    let mut third = Keeping::connect(&server).await;
    third.ask().await.unwrap();
    kept[1].ask().await.unwrap_err();
    kept[0].ask().await.unwrap();
    assert_eq!(server.counts.of(Refusal::Crowded), 0);
}

#[tokio::test]
async fn a_panic_is_one_500_and_counted() {
    let server = Server::start(quick()).await;
    let (status, text) = server.get("/panic").await;
    assert_eq!((status, text.as_str()), (500, "internal error; the log says which\n"));
    assert_eq!(server.counts.of(Refusal::Panic), 1);
    assert_eq!(server.get("/hello").await.0, 200);
}

#[tokio::test]
async fn a_handler_that_hangs_is_given_up() {
    let server = Server::start(quick()).await;
    let (status, text) = server.get("/hang").await;
    assert_eq!((status, text.as_str()), (503, "no answer within 0.4s\n"));
}

#[tokio::test]
async fn stopping_lets_the_request_under_way_finish() {
    let server = Server::start(Limits { request_time: PATIENCE, ..quick() }).await;
    let address = Address::Tcp(server.address);
    let request = Ask::new(Method::GET, "/soon", "").within(PATIENCE);
    let (answer, ()) = tokio::join!(ask(&address, request), async {
        STARTED.notified().await;
        server.tasks.stop();
    });
    assert_eq!(answer.unwrap().text(), "soon");
    assert_eq!(server.tasks.drain(PATIENCE).await, Ok(()));
    assert!(matches!(
        ask(&address, Ask::new(Method::GET, "/hello", "")).await,
        Err(ClientError::Connect { .. })
    ));
}

#[tokio::test]
async fn a_unix_socket_serves_and_replaces_what_a_dead_process_left() {
    let folder = Folder::create().unwrap();
    let path = folder.at("socket");
    drop(bind_unix(&path, 0o600).await.unwrap());
    let listener = bind_unix(&path, 0o600).await.unwrap();
    assert!(bind_unix(&path, 0o600).await.unwrap_err().to_string().contains("another process"));
    let tasks = Tasks::default();
    tasks.vital("server", serve(listener, router(), quick(), tasks.stopping()));
    let unix = Address::Unix(path);
    let answer = ask(&unix, Ask::new(Method::POST, "/echo", "{}")).await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    let answer = ask(&unix, Ask::new(Method::GET, "/caller", "")).await.unwrap();
    let uid = std::fs::metadata("/proc/self").unwrap().uid();
    assert_eq!(answer.text(), format!("uid {uid} (pid {})", std::process::id()));
    let crowded = folder.at("crowded");
    let (listener, limits) =
        (bind_unix(&crowded, 0o600).await.unwrap(), Limits { connections: 0, ..quick() });
    tasks.vital("crowded", serve(listener, router(), limits, tasks.stopping()));
    let mut answer = String::new();
    let mut stream = UnixStream::connect(&crowded).await.unwrap();
    drop(stream.read_to_string(&mut answer).await);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let file = folder.put("file", "precious");
    assert!(bind_unix(&file, 0o600).await.unwrap_err().to_string().contains("no socket"));
}

#[tokio::test]
async fn the_client_hangs_up_on_a_server_that_stalls_babbles_or_vanishes() {
    let request = || Ask::new(Method::GET, "/", "").within(Duration::from_millis(300));
    let silent = lying_server(b"").await;
    assert!(matches!(ask(&silent, request()).await, Err(ClientError::NoAnswer { .. })));
    let half = lying_server(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
    assert!(matches!(ask(&half, request()).await, Err(ClientError::NoAnswer { .. })));
    let babble = lying_server(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").await;
    let request = || request().within(PATIENCE);
    assert!(matches!(ask(&babble, request()).await, Err(ClientError::Broken { .. })));
    let huge = lying_server(b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n").await;
    let small = || request().at_most(4);
    assert!(matches!(ask(&huge, small()).await, Err(ClientError::TooLarge { .. })));
    let fifth = lying_server(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde").await;
    assert!(matches!(ask(&fifth, small()).await, Err(ClientError::TooLarge { .. })));
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = ask(&Address::Tcp(nobody), request()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot connect to {nobody}"));
}

#[tokio::test]
async fn a_kept_connection_is_used_again_until_its_peer_closes_it() {
    let server = Counting::start(|served| served < 3).await;
    let kept = Pool::new(server.address, 1);
    let get = || Ask::new(Method::GET, "/", "").within(PATIENCE);
    for _ in 0..6 {
        assert_eq!(kept.ask(get()).await.unwrap().status, 200);
    }
    // Three answers over each.
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
    kept.forget();
    assert_eq!(kept.ask(get()).await.unwrap().status, 200);
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn only_what_means_the_same_twice_is_asked_twice() {
    // Each connection answers once, takes another request, and ends.
    let server = Counting::start(|served| served < 1).await;
    let kept = Pool::new(server.address, 1);
    let ask = |method| kept.ask(Ask::new(method, "/", "").within(PATIENCE));
    assert_eq!(ask(Method::PUT).await.unwrap().status, 200);
    server.takes_one_more.store(true, Ordering::SeqCst);
    assert_eq!(ask(Method::PUT).await.unwrap().status, 200);
    assert!(matches!(ask(Method::POST).await, Err(ClientError::Broken { .. })));
    assert_eq!(ask(Method::POST).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_pool_has_no_more_connections_than_its_limit() {
    let server = Counting::start(|_| true).await;
    let kept = Pool::new(server.address, 2);
    let get = || kept.ask(Ask::new(Method::GET, "/", "").within(PATIENCE));
    for _ in 0..2 {
        let (one, two, three) = tokio::join!(get(), get(), get());
        assert!([one, two, three].iter().all(Result::is_ok));
        assert_eq!(server.connections.load(Ordering::SeqCst), 2);
        assert_eq!(server.open.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_request_waits_for_a_connection_no_longer_than_its_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let kept = Pool::new(silent.local_addr().unwrap(), 1);
    let get = |limit| kept.ask(Ask::new(Method::GET, "/", "").within(limit));
    let mut first = Box::pin(get(PATIENCE));
    let (second, is_waiting) = tokio::join!(get(Duration::from_millis(50)), async {
        poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await
    });
    assert!(is_waiting && matches!(second, Err(ClientError::NoAnswer { .. })));
}

/// Answers on connections that it counts.
struct Counting {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    takes_one_more: Arc<AtomicBool>,
}

impl Counting {
    /// Closes a connection once `goes_on` says so of the number of its answers.
    async fn start(goes_on: fn(usize) -> bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            open: Arc::default(),
            takes_one_more: Arc::default(),
        };
        let (connections, open) = (server.connections.clone(), server.open.clone());
        let takes_one_more = server.takes_one_more.clone();
        let (tasks, each) = (Tasks::default(), Tasks::default());
        tasks.minor("counting server", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let (open, takes_one_more) = (open.clone(), takes_one_more.clone());
                each.minor("connection", async move {
                    let (mut served, mut head) = (0, [0; 1024]);
                    while goes_on(served) && stream.read(&mut head).await.is_ok_and(|n| n > 0) {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                        stream.write_all(answer).await.unwrap();
                        served += 1;
                    }
                    if takes_one_more.load(Ordering::SeqCst) {
                        drop(stream.read(&mut head).await);
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                    Ok::<(), std::io::Error>(())
                });
            }
            Ok::<(), std::io::Error>(())
        });
        server
    }
}

#[tokio::test]
async fn connections_on_which_nothing_was_asked_make_room_too() {
    let server = Server::start(Limits { connections: 2, head_time: PATIENCE, ..quick() }).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
        silent.last_mut().unwrap().write_all(b"GET /hello HTTP/1.1\r\n").await.unwrap();
    }
    // While two leave for the next two, there is no place for one more.
    until_async("there is room", async || server.get("/hello").await.0 == 200).await;
}

static HELD: tokio::sync::Notify = tokio::sync::Notify::const_new();
static STARTED: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// As which process the server knows who asks.
async fn caller(caller: Option<Extension<Caller>>) -> String {
    caller.map_or("unknown".to_owned(), |Extension(caller)| caller.to_string())
}

fn router() -> Router {
    Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/caller", get(caller))
        .route("/hang-up", post(|| async { HangUp::response() }))
        .route(
            "/held",
            get(|| async {
                HELD.notify_one();
                std::future::pending::<&str>().await
            }),
        )
        .route("/hang", get(std::future::pending::<&str>))
        .route("/panic", get(broken))
        .route(
            "/soon",
            get(|| async {
                STARTED.notify_one();
                tokio::time::sleep(Duration::from_millis(50)).await;
                "soon"
            }),
        )
}

async fn broken() -> &'static str {
    panic!("on purpose")
}

fn quick() -> Limits {
    Limits {
        head_time: Duration::from_millis(200),
        request_time: Duration::from_millis(400),
        body_size: 16 * 1024,
        ..Limits::small(Counts::default())
    }
}

struct Server {
    address: SocketAddr,
    counts: Counts,
    tasks: Tasks,
}

impl Server {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, counts) = (Tasks::default(), limits.counts.clone());
        tasks.vital("server", serve(listener, router(), limits, tasks.stopping()));
        Self { address, counts, tasks }
    }

    /// Sends these bytes, and reads until the server closes.
    async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The server may refuse before it has read everything.
        drop(stream.write_all(bytes).await);
        let mut answer = Vec::new();
        drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap());
        String::from_utf8(answer).unwrap()
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = Ask::new(Method::GET, path, "").within(PATIENCE);
        let answer = ask(&Address::Tcp(self.address), request).await.unwrap();
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    }
}

/// A client that keeps its connection.
struct Keeping(TcpStream);

impl Keeping {
    async fn connect(server: &Server) -> Self {
        Self(TcpStream::connect(server.address).await.unwrap())
    }

    /// Asks once, and reads the answer to its end.
    async fn ask(&mut self) -> std::io::Result<()> {
        self.0.write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n").await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            let mut byte = [0];
            tokio::time::timeout(PATIENCE, self.0.read_exact(&mut byte)).await.unwrap()?;
            answer.extend(byte);
        }
        Ok(())
    }
}

/// Says these bytes to whoever connects first, whatever is asked, and then nothing.
async fn lying_server(says: &'static [u8]) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    Tasks::default().minor("lying server", async move {
        let (mut stream, _) = listener.accept().await?;
        stream.write_all(says).await?;
        std::future::pending::<std::io::Result<()>>().await
    });
    address
}
