//! Broken and hostile requests to the socket: each gets a clear answer, and nobody else notices.

use crate::support::{Host, until, vm_file};
use std::io::Write;
use std::os::unix::net::UnixStream;
use windlass_testkit::qmp::Machine;

/// A method, a path, a body, the status and the words that are due.
const REQUESTS: &[(&str, &str, &str, u16, &str)] = &[
    ("GET", "/", "", 404, "there is nothing at /"),
    ("GET", "/v1", "", 404, "there is nothing at /v1"),
    ("GET", "/v2/state", "", 404, "there is nothing at /v2/state"),
    ("GET", "/v1/state/", "", 404, "there is nothing at"),
    ("GET", "/v1/../../etc/passwd", "", 404, "there is nothing at"),
    ("POST", "/v1/state", "", 405, "POST is not for /v1/state"),
    ("DELETE", "/v1/vms", "", 405, "DELETE is not for /v1/vms"),
    ("GET", "/v1/freeze", "", 405, "GET is not for /v1/freeze"),
    ("BREW", "/v1/freeze", "", 405, "BREW is not for /v1/freeze"),
    ("GET", "/v1/explain/nope", "", 404, "nothing is known of a VM nope"),
    ("GET", "/v1/explain/%2e%2e%2fstate", "", 404, "nothing is known of a VM ../state"),
    ("GET", "/v1/explain/%ff", "", 400, ""),
    ("GET", "/v1/explain/a?minutes=0", "", 400, "minutes=0: must be minutes=N"),
    ("GET", "/v1/explain/a?minutes=61", "", 400, "with N from 1 to 60"),
    ("GET", "/v1/explain/a?minutes=NaN", "", 400, "minutes=NaN: must be"),
    ("GET", "/v1/explain/a?hours=1", "", 400, "hours=1: must be"),
    ("POST", "/v1/freeze", "yes", 400, "this order takes none"),
    ("POST", "/v1/thaw", "{\"frozen\":false}", 400, "this order takes none"),
    ("POST", "/v1/vm/a/resume", "[]", 400, "this order takes none"),
    ("POST", "/v1/vm/a/pause", "", 400, "the body: EOF"),
    ("POST", "/v1/vm/a/pause", "{}", 400, "missing field `until`"),
    ("POST", "/v1/vm/a/pause", "{\"until\":7}", 400, "until: invalid type: integer `7`"),
    ("POST", "/v1/vm/a/pause", "{\"until\":\"NaN\"}", 400, "until = NaN: must be RFC 3339"),
    ("POST", "/v1/vm/a/pause", "{\"until\":\"2020-01-01T00:00:00Z\"}", 400, "in the future"),
    ("POST", "/v1/vm/a/pause", "{\"until\":\"9999-01-01T00:00:00Z\"}", 400, "366 days"),
    ("POST", "/v1/vm/a/pause", "{\"until\":\"1\",\"for\":\"1h\"}", 400, "unknown field `for`"),
    ("POST", "/v1/vm/b/pause", "{\"until\":\"2099", 400, "until: EOF"),
    ("POST", "/v1/vm/nope/release", "{}", 404, "there is no VM nope; there are a"),
    ("POST", "/v1/vm/a/release", "{\"cpu\":NaN}", 400, "expected value"),
    ("POST", "/v1/vm/a/release", "{\"cpu\":-1}", 400, "cpu: invalid value"),
    ("POST", "/v1/vm/a/release", "{\"cpu\":1e400}", 400, "number out of range"),
    ("POST", "/v1/vm/a/release", "{\"cpu\":0}", 400, "must be at least 1"),
    ("POST", "/v1/vm/a/release", "{\"mem\":18446744073709551615}", 400, "at most"),
    ("POST", "/v1/vm/a/release", "{\"mem\":\"1GiB\"}", 400, "mem: invalid type"),
    ("POST", "/v1/vm/a/release", "{\"memory\":1}", 400, "unknown field `memory`"),
    ("POST", "/v1/vm/a/release", "{} {}", 400, "trailing characters"),
    ("POST", "/v1/vm/a/release", "\u{0}", 400, "expected value"),
    ("POST", "/v1/check", "{}", 400, "missing field `name`"),
    ("POST", "/v1/check", "{\"name\":\"a\",\"text\":{}}", 400, "text: invalid type: map"),
    ("POST", "/v1/check", "{\"name\":\"\\ud800\",\"text\":\"\"}", 400, "name: "),
    ("POST", "/v1/check", "null", 400, "the body: invalid type: null"),
];

#[test]
fn whatever_comes_over_the_socket_the_answer_is_clear_and_nobody_notices() {
    let host = Host::start();
    let machine = Machine::start(host.path("a.sock"), 0);
    host.put("a", &vm_file(machine.path(), "127.0.0.71:1"));
    // It is booked before it is seen, and a size is judged by what was seen.
    until("a is seen", || !host.state()["vms"][0]["seen"].is_null());
    assert!(REQUESTS.len() >= 30);
    for (method, path, body, status, words) in REQUESTS {
        let answer = host.raw(request(method, path, body).as_bytes());
        let what = format!("{method} {path} {body}\n{answer}");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}");
        assert!(answer.contains(words), "{what}");
    }
    broken(&host);
    assert_eq!(host.state()["vms"].as_array().unwrap().len(), 1);
    assert_eq!(host.state()["frozen"], false);
}

/// What is not even a request, or too much of one.
fn broken(host: &Host) {
    let nested = "[".repeat(100_000);
    let answer = host.raw(request("POST", "/v1/check", &nested).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let huge =
        format!("POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 1_u64 << 40);
    let answer = host.raw(huge.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("1048576 bytes"), "{answer}");
    let chunks = format!(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{}",
        format!("10000\r\n{}\r\n", "x".repeat(0x10000)).repeat(17)
    );
    assert!(host.raw(chunks.as_bytes()).starts_with("HTTP/1.1 413 "));
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(100_000));
    assert!(host.raw(long.as_bytes()).starts_with("HTTP/1.1 4"));
    let many = format!("GET /v1/host HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1_000));
    assert!(host.raw(many.as_bytes()).starts_with("HTTP/1.1 431 "));
    for noise in [&b"\x16\x03\x01\x02\x00"[..], b"GET /v1/state\r\n\r\n", b"\r\n\r\n\x00\xff\xfe"] {
        let answer = host.raw(noise);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
    }
}

#[test]
fn slow_senders_are_told_so_and_others_are_served_meanwhile() {
    let host = Host::start();
    let mut slow: Vec<UnixStream> =
        (0..20).map(|_| UnixStream::connect(host.path("host.sock")).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-le").unwrap();
    }
    host.say(&["top"]);
    for mut stream in slow {
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}

#[test]
fn ten_thousand_requests_leave_nothing_behind() {
    let host = Host::start();
    let large = format!("{{\"name\":\"a\",\"text\":\"{}\"}}", "x".repeat(100_000));
    let ask = |times: u32| {
        for nth in 0..times {
            let body = if nth.is_multiple_of(100) { large.as_str() } else { "{" };
            host.raw(request("POST", "/v1/check", body).as_bytes());
        }
    };
    ask(2_000);
    let before = host.resident();
    ask(8_000);
    let after = host.resident();
    assert!(after < before + 4_096, "{before} KiB before, {after} KiB after");
}

fn request(method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
