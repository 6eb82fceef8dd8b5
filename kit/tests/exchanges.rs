//! What a client says over a connection, and what it takes for an answer.

use bytes::Bytes;
use http::Method;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use windlass_kit::client::{Address, Answer, Ask, ClientError, Pool, ask_over, with_causes};

const TO: Address = Address::Unix(std::path::PathBuf::new());

#[tokio::test]
async fn a_request_has_these_bytes() {
    let head = |line: &str, more: &str| {
        format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             connection: close\r\n{more}\r\n"
        )
    };
    for (method, body, said) in [
        (Method::GET, "", head("GET /a?b=c", "")),
        (Method::POST, "{}", head("POST /a?b=c", "content-length: 2\r\n") + "{}"),
        (Method::PUT, "{}", head("PUT /a?b=c", "content-length: 2\r\n") + "{}"),
        (Method::DELETE, "{}", head("DELETE /a?b=c", "content-length: 2\r\n") + "{}"),
        (Method::DELETE, "", head("DELETE /a?b=c", "")),
        (Method::POST, "", head("POST /a?b=c", "content-length: 0\r\n")),
    ] {
        let (ours, mut theirs) = duplex(1 << 16);
        let (to, ask) = (TO, Ask::new(method.clone(), "/a?b=c", Bytes::from(body)));
        let answering = async {
            let mut heard = vec![0; said.len()];
            theirs.read_exact(&mut heard).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&heard), said);
            theirs.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        };
        let (came, ()) = tokio::join!(ask_over(ours, &to, ask), answering);
        assert_eq!(came.unwrap(), answer(204, ""), "{method}");
    }
}

#[tokio::test]
async fn an_answer_is_whole_in_whatever_pieces_it_comes() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                   3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\na: b\r\n\r\n";
    let informed = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
    for (said, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", answer(200, "abc")),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", answer(404, "")),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", answer(200, "until the end")),
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", answer(200, "until the end")),
        ("HTTP/1.1 307 Go\r\nlocation: /b\r\ncontent-length: 2\r\n\r\nno", answer(307, "no")),
        ("HTTP/1.1 307 Go\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n", answer(307, "")),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", answer(304, "")),
        (chunked, answer(200, "abc0123456789")),
        (informed, answer(200, "abc")),
    ] {
        for piece in [1, 2, 3, 7, said.len()] {
            let came = asked(said.as_bytes(), piece, get()).await;
            assert_eq!(came.unwrap(), expected, "{said:?} by {piece}");
        }
    }
    let head = asked(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", 9, ask(Method::HEAD)).await;
    assert_eq!(head.unwrap(), answer(200, ""));
}

#[tokio::test]
async fn what_is_no_whole_answer_in_bounds_is_an_error() {
    let large = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(20_000));
    let endless =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;{}", "x".repeat(40_000));
    for (said, words) in [
        ("", "it ended before an answer"),
        ("HTTP/1.1 200 OK\r\ncontent-le", "it ended before an answer"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "it ended before an answer"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", "it ended within its answer"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "it ended within its answer",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "the connection to  broke"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3, 4\r\n\r\nabc", "the connection to  broke"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 65\r\n\r\n", "larger than 64 bytes"),
        (&large, "its head is larger than 16384 bytes"),
        (&endless, "the connection to  broke"),
    ] {
        let error = asked(said.as_bytes(), 4096, get()).await.unwrap_err();
        let text = with_causes(&error);
        assert!(text.contains(words), "{said:.60}: {text}");
    }
    let long = "z".repeat(65);
    let chunked =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n41\r\n{long}\r\n0\r\n\r\n");
    let until_the_end = format!("HTTP/1.1 200 OK\r\n\r\n{long}");
    for said in [chunked, until_the_end] {
        let error = asked(said.as_bytes(), 5, get()).await.unwrap_err();
        assert!(matches!(error, ClientError::TooLarge(_, 64)), "{said}: {error}");
    }
    let no_path = ask_over(duplex(64).0, &TO, Ask::new(Method::GET, "a b", "")).await;
    assert!(matches!(no_path.unwrap_err(), ClientError::Path(path) if path == "a b"));
}

/// A server that refuses a large request by its head closes before it has read the rest.
#[tokio::test]
async fn a_refusal_that_comes_before_the_end_of_a_request_is_heard() {
    let (ours, mut theirs) = duplex(64);
    let body = Bytes::from(vec![b'x'; 100_000]);
    let (to, ask) = (TO, Ask::new(Method::POST, "/", body));
    let refusing = async move {
        theirs.read_exact(&mut [0; 64]).await.unwrap();
        let refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n";
        theirs.write_all(refusal).await.unwrap();
    };
    let (came, ()) = tokio::join!(ask_over(ours, &to, ask), refusing);
    assert_eq!(came.unwrap(), answer(413, ""));
}

#[tokio::test]
async fn a_connection_is_used_again_unless_its_answer_says_otherwise() {
    for (said, connections) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 1),
        ("HTTP/1.1 307 Go\r\nlocation: /b\r\ncontent-length: 2\r\n\r\nno", 1),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc", 3),
        ("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", 3),
        // Another answer would be read in place of the next one.
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n", 3),
    ] {
        let (at, opened, _serving) = server(said).await;
        let pool = Pool::new(at, 1);
        for _ in 0..3 {
            pool.ask(get().within(Duration::from_secs(60))).await.unwrap();
        }
        assert_eq!(opened.load(Ordering::Relaxed), connections, "{said}");
    }
}

/// Answers every request with these bytes.
async fn server(said: &'static str) -> (SocketAddr, Arc<AtomicUsize>, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let (at, opened) = (listener.local_addr().expect("an address"), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&opened);
    let serving = JoinSet::from_iter([async move {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            open.spawn(converse(stream, said));
        }
    }]);
    (at, opened, serving)
}

async fn converse(mut stream: TcpStream, said: &str) {
    let mut heard = Vec::new();
    while stream.read_buf(&mut heard).await.is_ok_and(|count| count > 0) {
        if heard.ends_with(b"\r\n\r\n") {
            heard.clear();
            // The client may close at any time.
            let _ = stream.write_all(said.as_bytes()).await;
        }
    }
}

/// What comes of a peer that says these bytes, so many at a time, and closes.
async fn asked(said: &[u8], piece: usize, ask: Ask) -> Result<Answer, ClientError> {
    let (ours, mut theirs) = duplex(1 << 20);
    let to = TO;
    let asking = ask_over(ours, &to, ask.at_most(64));
    let saying = async {
        for piece in said.chunks(piece) {
            // A client that has heard enough hangs up.
            let _ = theirs.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        let _ = theirs.shutdown().await;
        theirs
    };
    tokio::join!(asking, saying).0
}

fn ask(method: Method) -> Ask {
    Ask::new(method, "/", "")
}

fn get() -> Ask {
    ask(Method::GET)
}

fn answer(status: u16, body: &'static str) -> Answer {
    Answer { status, body: Bytes::from(body) }
}
