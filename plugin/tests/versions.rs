//! The endpoint in every version of the wire: good bodies, and those that are broken or meant ill.
#![expect(clippy::unwrap_used, reason = "tests")]

use axum::body::{Bytes as Chunk, to_bytes};
use axum::http::{Request, header};
use windlass_kit::clock::Clock;
use windlass_plugin::http::read;
use windlass_plugin::{Endpoint, Shared};
use windlass_plugin_core::{Books, VmRecord};
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, Moment, PluginVersion, Resources, VmName};

/// A body of each version, and the answer.
const GOOD: [(&str, &str); 7] = [
    (
        r#"{"protoVersion":1,"pod":{"namespace":"default","name":"a"},"resources":{"vCPUs":2,"mem":16},"metrics":{"loadAvg1M":0.5,"loadAvg5M":0.25}}"#,
        r#"{"permit":{"vCPUs":2,"mem":16},"resourceUnit":{"vCPUs":1,"mem":4}}"#,
    ),
    (
        r#"{"protoVersion":2,"pod":{"namespace":"default","name":"a"},"resources":{"vCPUs":2,"mem":16},"metrics":null}"#,
        r#"{"permit":{"vCPUs":2,"mem":16},"resourceUnit":{"vCPUs":1,"mem":4}}"#,
    ),
    (
        r#"{"protoVersion":3,"pod":{"namespace":"default","name":"a"},"resources":{"vCPUs":"1500m","mem":16},"metrics":null}"#,
        r#"{"permit":{"vCPUs":"1500m","mem":16},"resourceUnit":{"vCPUs":"500m","mem":2}}"#,
    ),
    (
        r#"{"protoVersion":4,"pod":{"namespace":"default","name":"a"},"resources":{"vCPUs":"1500m","mem":16},"lastPermit":{"vCPUs":1,"mem":8},"metrics":null}"#,
        r#"{"permit":{"vCPUs":"1500m","mem":16},"resourceUnit":{"vCPUs":"500m","mem":2}}"#,
    ),
    (
        r#"{"protoVersion":5,"pod":{"namespace":"default","name":"a"},"resources":{"vCPUs":"1500m","mem":16},"lastPermit":{"vCPUs":1,"mem":8},"metrics":null}"#,
        r#"{"permit":{"vCPUs":"1500m","mem":16}}"#,
    ),
    (
        r#"{"protoVersion":6,"pod":{"namespace":"default","name":"a"},"computeUnit":{"vCPUs":"500m","mem":"256Mi"},"resources":{"vCPUs":"1500m","mem":"2Gi"},"lastPermit":{"vCPUs":1,"mem":"1Gi"},"metrics":{"loadAvg1M":0.5,"loadAvg5M":0.25,"memoryUsageBytes":520000000}}"#,
        r#"{"permit":{"vCPUs":"1500m","mem":"2Gi"}}"#,
    ),
    (
        r#"{"protoVersion":7,"pod":{"namespace":"default","name":"a"},"computeUnit":{"vCPUs":"500m","mem":"256Mi"},"resources":{"vCPUs":"1500m","mem":"2Gi"},"lastPermit":null,"metrics":{"loadAvg1M":0.5}}"#,
        r#"{"permit":{"vCPUs":"1500m","mem":"2Gi"}}"#,
    ),
];

#[tokio::test]
async fn every_version_is_answered_in_its_own_words() {
    assert_eq!(GOOD.len(), PluginVersion::known().count());
    for (body, answer) in GOOD {
        assert_eq!(post(&Endpoint(node()), body).await, (200, answer.to_owned()), "{body}");
    }
}

#[tokio::test]
async fn a_body_that_is_cut_short_anywhere_changes_nothing() {
    for (body, _) in GOOD {
        let shared = node();
        let (app, before) = (Endpoint(shared.clone()), shared.dump().node);
        for cut in 0..body.len() {
            let (status, text) = post(&app, &body[..cut]).await;
            assert_eq!(status, 400, "{}: {text}", &body[..cut]);
            assert!(text.starts_with("bad JSON: "), "{}: {text}", &body[..cut]);
        }
        assert_eq!(shared.dump().node, before);
    }
}

#[tokio::test]
async fn a_field_of_the_wrong_kind_is_named_in_every_version() {
    for (body, _) in GOOD {
        let shared = node();
        let (app, before) = (Endpoint(shared.clone()), shared.dump().node);
        for key in ["protoVersion", "pod", "namespace", "name", "vCPUs", "mem", "computeUnit"] {
            let Some(at) = body.find(&format!("\"{key}\":")) else { continue };
            let start = at + key.len() + 3;
            let end = start + value_length(&body[start..]);
            for odd in ["true", "[]", "[[]]", "-1", "1e99", "\"\\u0000\"", "{\"x\":[{}]}"] {
                let text_is_fine = matches!(key, "namespace" | "name") && odd.starts_with('"');
                let object_is_fine = matches!(key, "pod" | "computeUnit") && odd.starts_with('{');
                if text_is_fine || object_is_fine {
                    continue;
                }
                let body = format!("{}{odd}{}", &body[..start], &body[end..]);
                let (status, text) = post(&app, &body).await;
                assert_eq!(status, 400, "{body}: {text}");
                assert!(text.starts_with("bad JSON: ") && text.contains(key), "{body}: {text}");
                assert!(text.len() < 300 && !text.contains(char::is_control), "{text:?}");
            }
        }
        assert_eq!(shared.dump().node, before);
    }
}

#[tokio::test]
async fn a_vm_that_is_not_there_is_not_found_in_any_version() {
    for (body, _) in GOOD {
        let body = body.replace("\"a\"", "\"b\"");
        let (status, text) = post(&Endpoint(node()), &body).await;
        assert_eq!(status, 404, "{body}");
        assert!(text.starts_with("pod not found: pod: default/b"), "{text}");
    }
}

#[tokio::test]
async fn what_is_huge_is_refused_or_permitted_in_part() {
    for (version, body) in GOOD.iter().map(|(body, _)| body).enumerate() {
        let shared = node();
        let app = Endpoint(shared.clone());
        let slots = body.replace("\"mem\":16", "\"mem\":65535").replace("2Gi", "7Ei");
        let most =
            slots.replace("\"1500m\"", "4294967").replace("\"vCPUs\":2", "\"vCPUs\":4294967");
        let (status, text) = post(&app, &most).await;
        assert_eq!(status, 200, "{most}: {text}");
        let room = shared.dump().node;
        assert!(room.room.covers(room.reserved), "{most}: {}", room.reserved);
        for (what, other) in
            [("\"mem\":65535", "\"mem\":65536"), ("7Ei", "8Ei"), ("4294967", "4294968")]
        {
            if most.contains(what) {
                let (status, text) = post(&app, &most.replace(what, other)).await;
                assert_eq!(status, 400, "{text}");
                assert!(
                    text.starts_with("bad JSON: resources."),
                    "version {}: {text}",
                    version + 1
                );
            }
        }
    }
}

/// The last `protoVersion` counts, and the body is read as that version reads it.
#[tokio::test]
async fn the_last_of_two_versions_counts() {
    let old = GOOD[2].0.replace("\"protoVersion\":3", "\"protoVersion\":7,\"protoVersion\":3");
    assert_eq!(post(&Endpoint(node()), &old).await, (200, GOOD[2].1.to_owned()));
    let new = GOOD[6].0.replace("\"protoVersion\":7", "\"protoVersion\":3,\"ProtoVersion\":7");
    assert_eq!(post(&Endpoint(node()), &new).await, (200, GOOD[6].1.to_owned()));
    let mixed = GOOD[6].0.replace("\"protoVersion\":7", "\"protoVersion\":3");
    let (status, text) = post(&Endpoint(node()), &mixed).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("bad JSON: resources.mem: \"2Gi\" is not a whole number"), "{text}");
}

#[tokio::test]
async fn a_last_permit_that_lies_takes_nothing_from_others() {
    for (body, _) in &GOOD[3..6] {
        let shared = node();
        let app = Endpoint(shared.clone());
        let lie =
            body.replace("\"lastPermit\":{\"vCPUs\":1,", "\"lastPermit\":{\"vCPUs\":4000000,");
        let lie = lie.replace("\"vCPUs\":\"1500m\"", "\"vCPUs\":9");
        assert!(lie.contains("4000000"), "{lie}");
        assert_eq!(post(&app, &lie).await.0, 200);
        let node = shared.dump().node;
        assert!(node.room.covers(node.reserved), "{lie}: {}", node.reserved);
    }
}

/// A node with room for 4 CUs, where `a` has 1 and somebody else 1.
fn node() -> Shared {
    let mut books = Books::new(cu(4));
    for name in ["a", "other"] {
        books.enter(VmName::on_host(name), VmRecord::default(), cu(1));
    }
    let unit = ComputeUnit::new(MilliCpu::from_milli(500), Bytes::from_mib(256)).unwrap();
    Shared::new(books, unit, Clock::starting_at(Moment::from_millis(1_000_000)))
}

fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}

/// How long the JSON value is that a text begins with.
fn value_length(text: &str) -> usize {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    values.next().unwrap().unwrap();
    values.byte_offset()
}

async fn post(app: &Endpoint<Shared>, body: &str) -> (u16, String) {
    let request = Request::post("/").body(Chunk::from(body.to_owned())).unwrap();
    let response = app.respond(read(&request)).await;
    let status = response.status().as_u16();
    let expected = if status == 200 { "application/json" } else { "text/plain" };
    assert_eq!(response.headers()[header::CONTENT_TYPE], expected);
    let body = to_bytes(response.into_body(), 4096).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}
