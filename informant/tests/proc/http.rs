//! The program's endpoints on the loopback: kind agents, hostile bodies, slow senders.
use crate::support::agent::Agent;
use crate::support::guest::Guest;
use crate::support::program::Program;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use windlass_testkit::http::{self, Answer};
use windlass_testkit::wait::until;

/// A version 4 UUID.
const ID: &str = "9f0f6c1e-2f0b-4f3b-9c55-0a4f7c2f6a10";

#[test]
fn a_newer_agent_takes_over_and_the_older_one_returns() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let (first, second) = (Agent::start(1), Agent::start(2));
    first.take_over(&program);
    assert_eq!(first.register(&program).status, 409);
    second.take_over(&program);
    assert_eq!(first.called("/suspend"), 1);
    let refused = first.resize(&program, "/downscale", "1", "512Mi");
    let said = format!("Agent ID {} is not the active Agent", first.id);
    assert_eq!((refused.status, refused.body), (400, said));
    let health = format!(r#"{{"agentID":"{}"}}"#, first.id);
    let answer = program.ask("PUT", "/health-check", &health);
    assert_eq!((answer.status, answer.body.as_str()), (200, "{}"));

    let elsewhere = second.desc().replace("127.0.0.1:", "127.0.0.2:");
    assert_eq!(program.ask("DELETE", "/unregister", &elsewhere).status, 400);
    let answer = program.ask("DELETE", "/unregister", &second.desc());
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"wasActive":true}"#));
    assert_eq!(program.ask("DELETE", "/unregister", &second.desc()).status, 404);
    until("the first is resumed", || first.called("/resume") == 2);
    assert_eq!(first.resize(&program, "/upscale", "1", "512Mi").status, 200);
    let (one, two) = (&first.id, &second.id);
    let expected = [
        format!("now controlled by agent {one}"),
        "now controlled by no agent".to_owned(),
        format!("now controlled by agent {two}"),
        "now controlled by no agent".to_owned(),
        format!("agent {two} let go of: it unregistered"),
        format!("now controlled by agent {one}"),
    ];
    let mut of_agents = Vec::new();
    until("the log says so", || {
        of_agents = program.said();
        of_agents.retain(|line| line.contains("agent"));
        of_agents.len() >= expected.len()
    });
    assert_eq!(of_agents, expected);
}

#[test]
fn an_agent_that_is_gone_makes_room_for_the_next() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let (first, second) = (Agent::start(1), Agent::start(2));
    first.take_over(&program);
    drop(first);
    second.take_over(&program);
    until("let go of", || program.metric("windlass_informant_agents") == Some(1.0));
    assert_eq!(second.resize(&program, "/upscale", "1", "512Mi").status, 200);
}

#[test]
fn an_agent_that_never_answers_is_not_registered() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    // Accepts, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let answer = program.ask("POST", "/register", &desc(&silent.local_addr().unwrap().to_string()));
    assert_eq!(answer.status, 400);
    assert!(answer.body.starts_with("Error checking ID for agent 127.0.0.1:"), "{}", answer.body);
    assert!(answer.body.ends_with(": no answer"), "{}", answer.body);
}

#[test]
fn an_agent_that_says_it_is_another_is_not_registered() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let other = Agent::start(7);
    let answer = program.ask("POST", "/register", &desc(&other.addr.to_string()));
    assert_eq!(answer.status, 400);
    assert!(answer.body.ends_with(&format!(": it answered as {}", other.id)), "{}", answer.body);
}

#[test]
fn numbers_that_were_used_have_no_second_effect() {
    let guest = Guest::new();
    guest.cpu(1, true);
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    let said = |path, cpu, number| {
        let id = agent.id;
        let body = format!(
            r#"{{"data":{{"cpu":{cpu},"memory":"1Gi","id":{{"agentID":"{id}"}}}},"sequenceNumber":{number}}}"#
        );
        program.ask("PUT", path, &body)
    };
    let first = said("/downscale", 1, 50);
    assert!(first.body.contains(r#""Ok":true"#) && !guest.cpu_online(1), "{}", first.body);
    said("/upscale", 2, 51);
    assert!(guest.cpu_online(1));
    let stale = r#"{"Ok":false,"Status":"stale"}"#;
    assert_eq!(said("/downscale", 1, 50).body, stale);
    assert_eq!(said("/downscale", 1, 0).body, stale);
    assert_eq!(said("/upscale", 2, 3).body, "{}");
    assert!(guest.cpu_online(1));
}

#[test]
fn hostile_requests_are_answered_with_the_name_of_the_field() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let agent = Agent::start(1);
    agent.take_over(&program);
    let deep = "[".repeat(10_000);
    let register = |id: &str, addr: &str, min: &str, max: &str| {
        format!(
            r#"{{"agentID":{id},"agentServeAddr":{addr},"minProtoVersion":{min},"maxProtoVersion":{max}}}"#
        )
    };
    let (id, addr) = (format!("\"{ID}\""), "\"10.0.2.2:80\"");
    let sized = |cpu: &str, memory: &str, number: &str| {
        let agent = agent.id;
        format!(
            r#"{{"data":{{"cpu":{cpu},"memory":{memory},"id":{{"agentID":"{agent}"}}}},"sequenceNumber":{number}}}"#
        )
    };
    let broken = vec![
        ("POST", "/register", String::new(), "body"),
        ("POST", "/register", "hello".to_owned(), "byte 0"),
        ("POST", "/register", "\u{0}\u{1}".to_owned(), "byte 0"),
        ("POST", "/register", "{".to_owned(), "byte"),
        ("POST", "/register", deep.clone(), "byte"),
        ("POST", "/register", "[]".to_owned(), "body"),
        ("POST", "/register", "7".to_owned(), "body"),
        ("POST", "/register", "null".to_owned(), "mismatch"),
        ("POST", "/register", "{}".to_owned(), "mismatch"),
        ("POST", "/register", register("\"x\"", addr, "1", "4"), "agentID"),
        ("POST", "/register", register("7", addr, "1", "4"), "agentID"),
        ("POST", "/register", register(&id, "7", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, "\"localhost:80\"", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, "\"10.0.2.2\"", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, "\"10.0.2.2:99999\"", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, "\"0.0.0.0:80\"", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, "\"\\u001b[2J\"", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, "\"\"", "1", "4"), "agentServeAddr"),
        ("POST", "/register", register(&id, addr, "-1", "4"), "minProtoVersion"),
        ("POST", "/register", register(&id, addr, "1", "4294967296"), "maxProtoVersion"),
        ("POST", "/register", register(&id, addr, "1", "1.5"), "maxProtoVersion"),
        ("POST", "/register", register(&id, addr, "1", "\"4\""), "maxProtoVersion"),
        ("POST", "/register", register(&id, addr, "5", "9"), "mismatch"),
        ("POST", "/register", register(&id, addr, "4", "1"), "mismatch"),
        ("PUT", "/health-check", "{\"agentID\":[]}".to_owned(), "agentID"),
        ("PUT", "/health-check", "{}".to_owned(), "No Agent with ID"),
        ("PUT", "/downscale", "{}".to_owned(), "data.cpu"),
        ("PUT", "/downscale", "{\"data\":7}".to_owned(), "data"),
        ("PUT", "/downscale", sized("NaN", "\"1Gi\"", "1"), "byte"),
        ("PUT", "/downscale", sized("\"NaN\"", "\"1Gi\"", "1"), "data.cpu"),
        ("PUT", "/downscale", sized("\"-1\"", "\"1Gi\"", "1"), "data.cpu"),
        ("PUT", "/downscale", sized("1e99", "\"1Gi\"", "1"), "data.cpu"),
        ("PUT", "/downscale", sized("{}", "\"1Gi\"", "1"), "data.cpu"),
        ("PUT", "/downscale", sized("1", "\"1Zi\"", "1"), "data.memory"),
        ("PUT", "/downscale", sized("1", "\"99999999Ei\"", "1"), "data.memory"),
        ("PUT", "/downscale", sized("1", "true", "1"), "data.memory"),
        ("PUT", "/downscale", sized("1", "\"1Gi\"", "-1"), "sequenceNumber"),
        ("PUT", "/downscale", sized("1", "\"1Gi\"", "99999999999999999999"), "sequenceNumber"),
        ("PUT", "/upscale", sized("1", "\"one\"", "1"), "data.memory"),
        ("PUT", "/upscale", sized("null", "\"1Gi\"", "1"), "data.cpu"),
        ("PUT", "/upscale", r#"{"cpu":"500m","memory":"2Gi"}"#.to_owned(), "is not the active"),
        ("DELETE", "/unregister", deep, "byte"),
        ("DELETE", "/unregister", "{}".to_owned(), "No agent with ID"),
        ("POST", "/register", "x".repeat(17_000), "16384 bytes"),
    ];
    assert!(broken.len() >= 30);
    for (method, path, body, named) in broken {
        let answer = program.ask(method, path, &body);
        let shown: String = body.chars().take(80).collect();
        assert!((400..500).contains(&answer.status), "{shown}: {answer:?}");
        assert!(answer.body.contains(named), "{shown}: {answer:?}");
        assert!(answer.body.chars().count() < 400 && !answer.body.contains('\u{1b}'), "{answer:?}");
    }
    assert_eq!(agent.resize(&program, "/upscale", "1", "512Mi").status, 200);
    assert_eq!(program.metric("windlass_informant_agents"), Some(1.0));
}

#[test]
fn wrong_methods_and_paths_are_answered_as_the_reference_does() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    for (method, path, right) in [
        ("GET", "/register", "POST"),
        ("POST", "/health-check", "PUT"),
        ("POST", "/downscale", "PUT"),
        ("DELETE", "/upscale", "PUT"),
        ("POST", "/unregister", "DELETE"),
        ("PUT", "/metrics", "GET"),
        ("POST", "/livez", "GET"),
    ] {
        let answer = program.ask(method, path, "{}");
        let said = format!("request method must be {right}");
        assert_eq!((answer.status, answer.body), (405, said), "{method} {path}");
    }
    for path in ["/", "/id", "/register/", "/registerx", "/..%2f", "/metrics/x"] {
        assert_eq!(program.ask("POST", path, "{}").status, 404, "{path}");
    }
}

#[test]
fn bytes_that_are_not_http_close_the_connection_and_nothing_else() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let lengths = "POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 6\r\n\r\nhello";
    let huge = "POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
    let chunk = "POST /register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    for bytes in [
        "\r\n\r\n\r\n",
        "\u{16}\u{3}\u{1}",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        long.as_str(),
        many.as_str(),
        lengths,
        huge,
        chunk,
    ] {
        let shown: String = bytes.chars().take(60).collect();
        let status = raw(&program, bytes).map(|answer| answer.status);
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{shown:?}: {status:?}");
    }
    let endless = format!("{:x}\r\n{}\r\n", 8192, "x".repeat(8192)).repeat(100);
    let chunked = "POST /register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let status = raw(&program, &(chunked.to_owned() + &endless));
    assert!(status.is_none_or(|answer| answer.status == 413));
    assert_eq!(program.ask("GET", "/livez", "").status, 200);
}

#[test]
fn slow_senders_are_hung_up_on_and_keep_nobody_out() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let send = |text: &str| {
        let mut stream = http::connect(program.addr);
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let slow_head = send("POST /register HTTP/1.1\r\nHost:");
    let silent = send("");
    let slow_body =
        send("POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"agent");
    let answered = answer(slow_body).unwrap();
    assert_eq!((answered.status, answered.body.trim_end()), (408, "body: was not there within 2s"));
    assert!(answer(slow_head).is_none_or(|answer| answer.status == 408));
    assert!(answer(silent).is_none_or(|answer| answer.status == 408));

    let crowd: Vec<TcpStream> = (0..200).map(|_| send("GET /metrics HTTP/1.1\r\nHost:")).collect();
    let agent = Agent::start(1);
    agent.take_over(&program);
    assert!(program.metric("windlass_informant_connections_crowded_total").unwrap() >= 100.0);
    drop(crowd);
}

#[test]
fn a_connection_is_kept_for_the_next_request_and_idle_ones_make_room() {
    let guest = Guest::new();
    let program = Program::start(guest.root(), &[]);
    let ask = |stream: &mut TcpStream| {
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        let length = stream.read(&mut answer).unwrap_or(0);
        answer[..length].starts_with(b"HTTP/1.1 200 ")
    };
    let connect = || http::connect(program.addr);
    let mut kept = connect();
    assert!(ask(&mut kept) && ask(&mut kept) && ask(&mut kept));
    // One that is being answered is not idle: the informant calls an agent that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let body = desc(&silent.local_addr().unwrap().to_string());
    let mut busy = connect();
    let length = body.len();
    let head = "POST /register HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length:";
    busy.write_all(format!("{head} {length}\r\n\r\n{body}").as_bytes()).unwrap();
    let _called = silent.accept().unwrap();
    let mut idle: Vec<TcpStream> = (0..32).map(|_| connect()).collect();
    assert!(idle.iter_mut().skip(2).all(ask));
    assert_eq!(answer(busy).map(|answer| answer.status), Some(400));
    assert!(!ask(&mut kept), "the oldest that was idle made room");
}

/// What comes back for these bytes; nothing if the peer hangs up without an answer.
fn raw(program: &Program, bytes: &str) -> Option<Answer> {
    http::parse(&http::raw(http::connect(program.addr), bytes.as_bytes()))
}

/// What comes back on this connection until its end.
fn answer(stream: TcpStream) -> Option<Answer> {
    http::parse(&http::rest(stream))
}

fn desc(addr: &str) -> String {
    format!(
        r#"{{"agentID":"{ID}","agentServeAddr":"{addr}","minProtoVersion":4,"maxProtoVersion":4}}"#
    )
}
