//! Agent and informant before v2.0.
//!
//! v1.0 and v1.1 were written by the types of the reference's v0.6.0, v1.2 by those of v0.9.0.

use super::{ID, check};
use windlass_protocol::informant::{
    AgentDesc, DownscaleResult, Empty, Expected, HealthCheck, Identified, InformantDesc,
    MoreResources, ResourceMessage, Unregistered, v1_0, v1_1, v1_2,
};
use windlass_protocol::{Bytes, InformantVersion, MilliCpu, Resources, Sequence, Versions};

#[test]
fn informant_v1_0() {
    session(
        InformantVersion::V1_0,
        [
            "informant-v1.0-agent-desc.json",
            "informant-v1.0-informant-desc.json",
            "informant-v1.0-informant-desc-without-metrics.json",
            "informant-v1.0-unregistered.json",
            "informant-v1.0-identified.json",
            "informant-v1.0-expected.json",
            "informant-v1.0-empty.json",
        ],
    );
    answers(["informant-v1.0-downscale-agreed.json", "informant-v1.0-downscale-declined.json"]);
    let size = v1_0::Size(size(2000, 2 << 30));
    check("informant-v1.0-size.json", &size, v1_0::Size::encode, v1_0::Size::decode);
}

#[test]
fn informant_v1_1() {
    session(
        InformantVersion::V1_1,
        [
            "informant-v1.1-agent-desc.json",
            "informant-v1.1-informant-desc.json",
            "informant-v1.1-informant-desc-without-metrics.json",
            "informant-v1.1-unregistered.json",
            "informant-v1.1-identified.json",
            "informant-v1.1-expected.json",
            "informant-v1.1-empty.json",
        ],
    );
    answers(["informant-v1.1-downscale-agreed.json", "informant-v1.1-downscale-declined.json"]);
    let size = v1_1::Size(size(2000, 2 << 30));
    check("informant-v1.1-size.json", &size, v1_1::Size::encode, v1_1::Size::decode);
    asks_for_more("informant-v1.1-more-resources.json");
}

#[test]
fn informant_v1_2() {
    session(
        InformantVersion::V1_2,
        [
            "informant-v1.2-agent-desc.json",
            "informant-v1.2-informant-desc.json",
            "informant-v1.2-informant-desc-without-metrics.json",
            "informant-v1.2-unregistered.json",
            "informant-v1.2-identified.json",
            "informant-v1.2-expected.json",
            "informant-v1.2-empty.json",
        ],
    );
    answers(["informant-v1.2-downscale-agreed.json", "informant-v1.2-downscale-declined.json"]);
    for (file, size) in [
        ("informant-v1.2-size.json", size(500, 2 << 30)),
        ("informant-v1.2-size-odd.json", size(1_024_000, (1536 << 20) + 1)),
    ] {
        check(file, &v1_2::Size(size), v1_2::Size::encode, v1_2::Size::decode);
    }
    asks_for_more("informant-v1.2-more-resources.json");
    let file = "informant-v1.2-health-check.json";
    check(file, &HealthCheck(ID), HealthCheck::encode, HealthCheck::decode);
}

#[test]
fn a_bare_size_says_neither_whose_it_is_nor_which() {
    let size = size(500, 2 << 30);
    let message = ResourceMessage::decode_any(&v1_2::Size(size).encode()).unwrap();
    assert_eq!(message, v1_2::Size(size).into());
    assert!(message.is_bare() && message.resources == size);
    assert_eq!(v1_2::Size::from(message), v1_2::Size(size));
    let numbered = ResourceMessage { id: ID, sequence: Sequence::from_number(8), ..message };
    assert_eq!(ResourceMessage::decode_any(&numbered.encode()), Ok(numbered));
    assert!(!numbered.is_bare());
    for (body, error) in [
        ("{}", "data.cpu: is missing"),
        (r#"{"sequenceNumber":3}"#, "data.cpu: is missing"),
        (r#"{"data":{"memory":"1Gi"}}"#, "data.cpu: is missing"),
        (r#"{"cpu":1}"#, "memory: is missing"),
        (r#"{"memory":"1Gi","data":null}"#, "cpu: is missing"),
        (r#"{"cpu":"x","memory":1}"#, "cpu: \"x\" is not "),
    ] {
        let found = ResourceMessage::decode_any(body.as_bytes()).unwrap_err().to_string();
        assert!(found.starts_with(error), "{body}: {found}");
    }
}

/// What sessions are made of; the files in the order in which they are checked.
fn session(version: InformantVersion, files: [&str; 7]) {
    let [agent, informant, without_metrics, unregistered, identified, expected, empty] = files;
    let versions = Versions { min: InformantVersion::V1_0, max: version };
    let desc = AgentDesc { agent_id: ID, serve_addr: "10.244.1.7:40123".into(), versions };
    check(agent, &desc, AgentDesc::encode, AgentDesc::decode);
    for (file, metrics_port) in [(informant, Some(9100)), (without_metrics, None)] {
        let desc = InformantDesc { version, metrics_port };
        check(file, &desc, InformantDesc::encode, InformantDesc::decode_reply);
    }
    let gone = Unregistered { was_active: true };
    check(unregistered, &gone, Unregistered::encode, Unregistered::decode_reply);
    let is = Identified { id: ID, sequence: Sequence::from_number(7) };
    check(identified, &is, Identified::encode, Identified::decode_reply);
    check(expected, &Expected(ID), Expected::encode, Expected::decode);
    check(empty, &Empty, Empty::encode, Empty::decode_reply);
}

fn answers([agreed, declined]: [&str; 2]) {
    let yes = "Set file cache size to 1189 MiB; Set cgroup memory.high to 659 MiB, of new max 759 \
               MiB";
    let no = "Calculated memory.high too low: 659 MiB (new high) < 800 MiB (current usage) + 100 \
              MiB (buffer)";
    for (file, ok, status) in [(agreed, true, yes), (declined, false, no)] {
        let result = DownscaleResult { ok, status: status.into() };
        check(file, &result, DownscaleResult::encode, DownscaleResult::decode_reply);
    }
}

fn asks_for_more(file: &str) {
    let more = MoreResources { expected: ID, cpu: false, memory: true };
    check(file, &more, MoreResources::encode, MoreResources::decode);
}

fn size(milli: u64, mem: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_bytes(mem) }
}
