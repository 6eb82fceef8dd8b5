//! The endpoint, without a socket: what it answers, with which status, in which words.
#![expect(clippy::unwrap_used, reason = "tests")]

use axum::body::{Bytes as Chunk, to_bytes};
use axum::http::{Request, header};
use windlass_kit::clock::Clock;
use windlass_plugin::http::read;
use windlass_plugin::{Endpoint, Shared};
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, Resources, VmName};

const GOOD: &str = r#"{"protoVersion":3,"pod":{"namespace":"default","name":"a"},"resources":{"vCPUs":2,"mem":16},"metrics":{"loadAvg1M":0.5,"loadAvg5M":0.25}}"#;
const GRANTED: &str = r#"{"permit":{"vCPUs":2,"mem":16},"resourceUnit":{"vCPUs":1,"mem":8}}"#;

#[tokio::test]
async fn a_want_that_fits_is_permitted_on_every_path() {
    for path in ["/", "/permit", "/anything/at/all?x=y"] {
        let shared = node();
        let request = Request::post(path).body(Chunk::from(GOOD)).unwrap();
        let response = Endpoint(shared).respond(read(&request)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        assert_eq!(std::str::from_utf8(&body).unwrap(), GRANTED);
    }
}

#[tokio::test]
async fn agents_are_told_the_unit_that_counts_now() {
    let shared = node();
    let unit = Resources { cpu: MilliCpu::from_cores(2), mem: Bytes::from_gib(2) };
    shared.set_unit(ComputeUnit::try_from(unit).unwrap());
    let (_, body) = post(&Endpoint(shared), GOOD.to_owned()).await;
    assert!(body.ends_with(r#""resourceUnit":{"vCPUs":2,"mem":16}}"#), "{body}");
}

#[tokio::test]
async fn what_is_short_is_permitted_in_part_and_noted() {
    let shared = node();
    let app = Endpoint(shared.clone());
    let all = GOOD.replace("\"vCPUs\":2,\"mem\":16", "\"vCPUs\":\"7500m\",\"mem\":200");
    let (status, body) = post(&app, all).await;
    assert_eq!(status, 200);
    let short = GRANTED.replace("\"vCPUs\":2,\"mem\":16", "\"vCPUs\":3,\"mem\":24");
    assert_eq!(body, short);

    let dump = serde_json::to_value(shared.dump()).unwrap();
    assert_eq!(dump["node"]["vms"][0]["reserved"]["cpu"], 3000);
    assert_eq!(dump["node"]["vms"][0]["claim"]["cpu"], 7500);
    assert_eq!(dump["notes"]["default/a"][0]["short"][0]["axis"], "cpu");
    assert_eq!(dump["notes"]["default/a"][0]["times"], 1);
}

#[tokio::test]
async fn what_was_permitted_is_counted() {
    let shared = node();
    let app = Endpoint(shared.clone());
    post(&app, GOOD.to_owned()).await;
    post(&app, GOOD.replace("16", "9000")).await;
    post(&app, "{".to_owned()).await;
    post(&app, GOOD.replace("\"a\"", "\"b\"")).await;
    post(&app, GOOD.replace("3,", "99,")).await;
    let mut registry = prometheus_client::registry::Registry::default();
    shared.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "windlass_plugin_permit_requests_total{answer=\"granted\"} 1",
        "windlass_plugin_permit_requests_total{answer=\"short\"} 1",
        "windlass_plugin_permit_requests_total{answer=\"bad-request\"} 1",
        "windlass_plugin_permit_requests_total{answer=\"unknown-vm\"} 1",
        "windlass_plugin_permit_requests_total{answer=\"version\"} 1",
        "windlass_plugin_room_milli_cpu 4000",
        "windlass_plugin_reserved_bytes 4294967296",
        "windlass_plugin_over 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let took =
        text.lines().find_map(|line| line.strip_prefix("windlass_plugin_permit_seconds_total "));
    let took: f64 = took.unwrap().parse().unwrap();
    assert!(took > 0.0 && took < 60.0, "{took} s for five requests");
}

#[tokio::test]
async fn a_refusal_has_the_reference_s_status_and_words_and_names_the_field() {
    let shared = node();
    let app = Endpoint(shared.clone());
    let before = shared.dump().node;
    for (body, status, words) in hostile() {
        let (found, text) = post(&app, body.clone()).await;
        let short: String = body.chars().take(200).collect();
        assert_eq!(found, status, "{short}: {text}");
        assert!(text.starts_with(words), "{short}: {text}");
        assert!(text.len() < 300, "{short}: {text}");
        assert!(!text.contains(|c: char| c.is_control()), "{short}: {text:?}");
    }
    assert_eq!(shared.dump().node, before, "nothing of it changed the books");
    assert_eq!(post(&app, GOOD.to_owned()).await, (200, GRANTED.to_owned()));
}

#[tokio::test]
async fn only_post_asks_for_permits() {
    let app = Endpoint(node());
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let request = Request::builder().method(method).body(Chunk::from(GOOD)).unwrap();
        assert_eq!(send(&app, request).await, (400, "must be POST".to_owned()), "{method}");
    }
}

#[tokio::test]
async fn a_body_is_read_no_further_than_its_limit() {
    let app = Endpoint(node());
    let blank = " ".repeat(10_000);
    let (status, text) = post(&app, blank).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("bad JSON: body: longer than 1024 bytes"), "{text}");

    // What is whole within the limit is read, whatever follows.
    let padded = format!("{GOOD}{}", " ".repeat(10_000));
    assert_eq!(post(&app, padded).await, (200, GRANTED.to_owned()));
}

#[tokio::test]
async fn later_keys_and_what_follows_the_first_value_are_ignored() {
    let app = Endpoint(node());
    for body in [
        format!("{GOOD}{GOOD}"),
        format!("{GOOD} trailing"),
        GOOD.replace("\"protoVersion\"", "\"lastPermit\":7,\"PROTOVERSION\""),
        GOOD.replace("\"metrics\":{", "\"metrics\":{\"memoryUsageBytes\":5,"),
        GOOD.replace("{\"loadAvg1M\":0.5,\"loadAvg5M\":0.25}", "null"),
        GOOD.replace("\"vCPUs\":2", "\"vCPUs\":\"2000m\""),
        GOOD.replace("\"vCPUs\":2", "\"vCPUs\":2e0"),
        GOOD.replace("\"protoVersion\":3", "\"protoVersion\":9,\"protoVersion\":3"),
    ] {
        assert_eq!(post(&app, body.clone()).await, (200, GRANTED.to_owned()), "{body}");
    }
}

/// Bodies that are broken or meant ill: body, status, and how the answer begins.
fn hostile() -> Vec<(String, u16, &'static str)> {
    let with = |what: &str, other: &str| {
        assert!(GOOD.contains(what), "{what}");
        GOOD.replace(what, other)
    };
    vec![
        (String::new(), 400, "bad JSON: byte 0: the body ends"),
        (" \n".into(), 400, "bad JSON: byte 2: the body ends"),
        ("{".into(), 400, "bad JSON: byte 1: a key in quotes"),
        (GOOD[..GOOD.len() - 1].into(), 400, "bad JSON: byte 136: a comma or }"),
        ("not json".into(), 400, "bad JSON: byte 0: no JSON value"),
        ("<xml/>".into(), 400, "bad JSON: byte 0: no JSON value"),
        ("protoVersion=3&pod=a".into(), 400, "bad JSON: byte 0: no JSON value"),
        ("\u{feff}{}".into(), 400, "bad JSON: byte 0: no JSON value"),
        ("[]".into(), 400, "bad JSON: body: a list is not an object"),
        ("\"text\"".into(), 400, "bad JSON: body: \"text\" is not an object"),
        ("7".into(), 400, "bad JSON: body: 7 is not an object"),
        ("null".into(), 400, "Invalid protocol version <invalid: zero>: protoVersion"),
        ("{}".into(), 400, "Invalid protocol version <invalid: zero>: protoVersion"),
        (with("3", "0"), 400, "Invalid protocol version <invalid: zero>: protoVersion"),
        (
            with("3", "8"),
            400,
            "Protocol version mismatch: Need v1.0 to v5.0 but got <unknown = v5.0 + 1>",
        ),
        (
            with("3", "4294967295"),
            400,
            "Protocol version mismatch: Need v1.0 to v5.0 but got <unknown = v5.0 + 4294967288>",
        ),
        (with("3", "6"), 400, "computeUnit required for protocol version v4.0: computeUnit is"),
        (with("3", "4294967296"), 400, "bad JSON: protoVersion: 4294967296 is not a whole number"),
        (with("3", "-3"), 400, "bad JSON: protoVersion: -3 is not a whole number"),
        (with("3", "3.0"), 400, "bad JSON: protoVersion: 3.0 is not a whole number"),
        (with("3", "3e0"), 400, "bad JSON: protoVersion: 3e0 is not a whole number"),
        (with("3", "\"3\""), 400, "bad JSON: protoVersion: \"3\" is not a whole number"),
        (with("3", "true"), 400, "bad JSON: protoVersion: true is not a whole number"),
        (with("\"a\"", "7"), 400, "bad JSON: pod.name: 7 is not a text"),
        (with("\"default\"", "{}"), 400, "bad JSON: pod.namespace: an object is not a text"),
        (
            with("{\"namespace\":\"default\",\"name\":\"a\"}", "\"a\""),
            400,
            "bad JSON: pod: \"a\" is",
        ),
        (with("\"a\"", "\"b\""), 404, "pod not found: pod: default/b is not a VM"),
        (with("\"a\"", "\"\""), 404, "pod not found: pod: default/ is not a VM"),
        (with("\"name\":\"a\"", "\"x\":1"), 404, "pod not found: pod: default/ is not a VM"),
        (with("\"a\"", "\"\\u001b[2J\\u0000\\n\""), 404, "pod not found: pod: default/\u{fffd}[2J"),
        (with("\"a\"", &format!("\"{}\"", "x".repeat(500))), 404, "pod not found: pod: default/xx"),
        (
            with("16", "-1"),
            400,
            "bad JSON: resources.mem: -1 is not a whole number from 0 to 65535",
        ),
        (with("16", "65536"), 400, "bad JSON: resources.mem: 65536 is not a whole number"),
        (with("16", "1e2"), 400, "bad JSON: resources.mem: 1e2 is not a whole number"),
        (with("16", "\"1Gi\""), 400, "bad JSON: resources.mem: \"1Gi\" is not a whole number"),
        (with("16", "99999999999999999999999"), 400, "bad JSON: resources.mem: 9999999999999999"),
        (
            with(":2,", ":-2,"),
            400,
            "bad JSON: resources.vCPUs: -2 is not a quantity of zero or more",
        ),
        (with(":2,", ":\"NaN\","), 400, "bad JSON: resources.vCPUs: \"NaN\" is not a quantity"),
        (with(":2,", ":NaN,"), 400, "bad JSON: byte 80: no JSON value"),
        (with(":2,", ":\"-1m\","), 400, "bad JSON: resources.vCPUs: \"-1m\" is not a quantity"),
        (with(":2,", ":5000000,"), 400, "bad JSON: resources.vCPUs: 5000000 is not at most"),
        (with(":2,", ":1e99,"), 400, "bad JSON: resources.vCPUs: 1e99 is not a quantity that fits"),
        (with(":2,", ":[2],"), 400, "bad JSON: resources.vCPUs: a list is not a quantity"),
        (with("{\"vCPUs\":2,\"mem\":16}", "[]"), 400, "bad JSON: resources: a list is not an obj"),
        (with("0.5", "\"NaN\""), 400, "bad JSON: metrics.loadAvg1M: \"NaN\" is not a number"),
        (with("0.25", "1e39"), 400, "bad JSON: metrics.loadAvg5M: 1e39 is not a number of at most"),
        (with("0.25", "-"), 400, "bad JSON: byte 132: a digit is expected"),
        (with("{\"loadAvg1M\":0.5,\"loadAvg5M\":0.25}", "3"), 400, "bad JSON: metrics: 3 is not"),
        ("[".repeat(1000), 400, "bad JSON: byte 512: nested deeper than 512"),
        ("{\"a\":".repeat(200), 400, "bad JSON: byte 1000: the body ends"),
        ("[".repeat(1_000_000), 400, "bad JSON: body: longer than 1024 bytes"),
        (format!("{{\"x\":\"{}\",{}", "y".repeat(2000), &GOOD[1..]), 400, "bad JSON: body: longer"),
        (format!("{}{GOOD}", " ".repeat(2000)), 400, "bad JSON: body: longer than 1024 bytes"),
    ]
}

/// A node with room for 4 CUs and 4 GiB, where `a` has 1 and somebody else 1.
fn node() -> Shared {
    let cu = |count| Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) };
    let mut books = Books::new(cu(4));
    for name in ["a", "other"] {
        let record = VmRecord { grain: cu(1), ..VmRecord::default() };
        books.enter(VmName::on_host(name), record, cu(1));
    }
    let unit = ComputeUnit::try_from(cu(1)).unwrap();
    Shared::new(books, unit, Clock::starting_at(Moment::from_millis(1_000_000)))
}

async fn post(app: &Endpoint<Shared>, body: String) -> (u16, String) {
    send(app, Request::post("/").body(Chunk::from(body)).unwrap()).await
}

async fn send(app: &Endpoint<Shared>, request: Request<Chunk>) -> (u16, String) {
    let response = app.respond(read(&request)).await;
    let status = response.status().as_u16();
    let expected = if status == 200 { "application/json" } else { "text/plain" };
    assert_eq!(response.headers()[header::CONTENT_TYPE], expected);
    let body = to_bytes(response.into_body(), 4096).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}
