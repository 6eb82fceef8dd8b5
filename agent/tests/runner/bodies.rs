//! Broken and hostile calls: each gets a clear answer that names what is wrong, nothing
//! panics, and other VMs do not notice.

use super::node::{Node, Vm, size};
use axum::Router;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_kit::server::{Limits, Refusal, serve};

/// Method, path, body, status, and what the answer has to say.
type Case = (&'static str, &'static str, String, u16, &'static str);

const ID: &str = r#""expectedID":"9f0f6c1e-2f0b-4f3b-9c55-0a4f7c2f6a10""#;

fn cases() -> Vec<Case> {
    let post = |body: &str, status, says| ("POST", "/try-upscale", body.to_owned(), status, says);
    let with = |rest: &str, says| post(&format!("{{{ID},{rest}}}"), 400, says);
    let expect = |path, body: &str, says| ("POST", path, body.to_owned(), 400, says);
    vec![
        // Not there, not so.
        ("POST", "/", "{}".into(), 404, "404 page not found"),
        ("POST", "/try-upscale/", "{}".into(), 404, "404 page not found"),
        ("POST", "/../../etc/passwd", "{}".into(), 404, "404 page not found"),
        ("GET", "/try-upscale", "{}".into(), 405, "request method must be POST"),
        ("PUT", "/resume", "{}".into(), 405, "request method must be POST"),
        ("DELETE", "/suspend", "{}".into(), 405, "request method must be POST"),
        ("POST", "/id", "{}".into(), 405, "request method must be GET"),
        ("TRACE", "/id", "{}".into(), 405, "request method must be GET"),
        // No JSON.
        ("GET", "/id", String::new(), 400, "bad JSON"),
        ("GET", "/id", "   \n".into(), 400, "bad JSON"),
        expect("/resume", "", "bad JSON"),
        expect("/resume", "expectedID", "bad JSON"),
        expect("/resume", "{\"expectedID\":", "bad JSON"),
        expect("/suspend", "\u{feff}{}", "bad JSON"),
        expect("/suspend", "{'expectedID':1}", "bad JSON"),
        post("NaN", 400, "bad JSON"),
        post("{\"cpu\":NaN}", 400, "bad JSON"),
        post("{\"cpu\":Infinity}", 400, "bad JSON"),
        post(&"[".repeat(20_000), 400, "bad JSON"),
        post(&"{\"a\":".repeat(10_000), 400, "bad JSON"),
        // The wrong type: the field is named.
        expect("/resume", "[]", "body"),
        expect("/resume", "\"9f0f6c1e-2f0b-4f3b-9c55-0a4f7c2f6a10\"", "body"),
        expect("/resume", "7", "body"),
        expect("/resume", r#"{"expectedID":7}"#, "expectedID"),
        expect("/resume", r#"{"expectedID":"NaN"}"#, "expectedID"),
        expect("/suspend", r#"{"expectedID":{"uuid":"x"}}"#, "expectedID"),
        expect("/suspend", r#"{"expectedID":"9f0f6c1e-2f0b-4f3b-9c55"}"#, "expectedID"),
        with("\"cpu\":1", "cpu"),
        with("\"cpu\":\"NaN\"", "cpu"),
        with("\"memory\":\"true\"", "memory"),
        with("\"memory\":[true]", "memory"),
        with("\"memory\":{}", "memory"),
        with("\"memory\":1e999", "memory"),
        // Understood, and meant for nobody here.
        expect_unknown("/resume", "{}"),
        expect_unknown("/resume", "null"),
        expect_unknown("/suspend", r#"{"unknown":[1,2,{"deep":[[]]}]}"#),
        post(&format!("{{{ID}}}"), 404, "not found"),
        post(&format!("{{{ID}}} trailing"), 404, "not found"),
        post(&format!("{{\"EXPECTEDID\":{}}}", &ID[13..]), 404, "not found"),
        // Too much.
        post(&format!("{{{ID},\"cpu\":\"{}\"}}", "x".repeat(100_000)), 413, "larger than 65536"),
    ]
}

fn expect_unknown(path: &'static str, body: &str) -> Case {
    ("POST", path, body.to_owned(), 404, "not found")
}

#[tokio::test(start_paused = true)]
async fn hostile_calls_get_clear_answers_and_change_nothing() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, node.add("b").await);
    node.until_has(&a, size(1, 256)).await;
    let port = at(&node, &a);
    assert!(cases().len() >= 30);
    for (method, path, body, status, says) in cases() {
        let start: String = body.chars().take(60).collect();
        let (got, text) = raw(port, method, path, &body).await;
        assert!(got == status && text.contains(says), "{method} {path} {start}: {got} {text}");
        assert!(text.len() < 400, "{method} {path} {start}: a long answer: {text}");
    }
    assert_eq!(node.agent.metrics().refusals().of(Refusal::Panic), 0);
    assert_eq!(a.upper(), size(1, 256));
    // Both go on.
    node.grow(&b).await;
    node.grow(&a).await;
}

#[tokio::test(start_paused = true)]
async fn slow_and_silent_callers_are_shown_out_and_nobody_waits_for_them() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, node.add("b").await);
    node.until_has(&a, size(1, 256)).await;
    let port = at(&node, &a);
    let mut callers = Vec::new();
    for start in [
        &b""[..],
        b"POST /resume HT",
        b"POST /resume HTTP/1.1\r\nhost: x\r\nx-slow: ",
        b"POST /resume HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{\"exp",
        b"POST /resume HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"e",
    ] {
        let mut caller = TcpStream::connect(port).await.unwrap();
        caller.write_all(start).await.unwrap();
        callers.push(caller);
    }
    node.grow(&b).await;
    node.grow(&a).await;
    for mut caller in callers {
        let mut answer = String::new();
        caller.read_to_string(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
        // A body may take as long as the answer to `/suspend` that it asks for.
        let late = answer.contains("head did not arrive within 5s")
            || answer.contains("body did not arrive within 9s");
        assert!(answer.is_empty() || late, "{answer}");
    }
    assert_eq!(node.agent.metrics().refusals().of(Refusal::HeadTime), 2);
    assert_eq!(node.agent.metrics().refusals().of(Refusal::BodyTime), 2);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_at_one_port_is_told_so_and_the_vm_goes_on_once_it_leaves() {
    let node = Node::start();
    let (a, b) = (node.add("a").await, node.add("b").await);
    node.until_has(&a, size(1, 256)).await;
    let port = at(&node, &a);
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(port).await.unwrap();
        // A request whose body never comes: a connection that asked nothing would make room.
        drop(stream.write_all(b"GET /id HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n").await);
        crowd.push(stream);
    }
    node.grow(&b).await;
    node.until("some are turned away", || {
        node.agent.metrics().refusals().of(Refusal::Crowded) > 90
    })
    .await;
    drop(crowd);
    node.grow(&a).await;
    let (status, _) = raw(port, "GET", "/id", "{}").await;
    assert_eq!(status, 200);
    // A listener of the program's own counts at the same place.
    let refused = node.agent.metrics().refusals().of(Refusal::Crowded);
    let limits = Limits { connections: 0, ..Limits::small(node.agent.metrics().refusals()) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap();
    node.tasks.minor("own", serve(listener, Router::new(), limits, node.tasks.stopping()));
    assert_eq!(raw(own, "GET", "/", "").await.0, 503);
    assert_eq!(node.agent.metrics().refusals().of(Refusal::Crowded), refused + 1);
}

fn at(node: &Node, vm: &Vm) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], node.agent.ports()[&vm.name]))
}

/// Sends a request as it is, and reads until the end.
async fn raw(to: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may refuse before it has read everything.
    drop(stream.write_all(body.as_bytes()).await);
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer));
    drop(read.await.unwrap());
    let answer = String::from_utf8(answer).unwrap();
    let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
    let kind = if status == 200 { "application/json" } else { "text/plain; charset=utf-8" };
    assert!(answer.contains(&format!("\r\ncontent-type: {kind}\r\n")), "{answer}");
    (status, answer.split_once("\r\n\r\n").map(|(_, text)| text.to_owned()).unwrap_or(answer))
}
