//! Every message of every version, byte for byte as the reference writes it.
//!
//! The files were written by the reference's own types. They are added, never edited. Each
//! is what our message encodes to, and decodes to our message again.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "golden/informant_v1.rs"]
mod informant_v1;

use std::fmt::Debug;
use std::path::Path;
use windlass_protocol::informant::{
    AgentDesc, DownscaleResult, Empty, Expected, HealthCheck, Identified, InformantDesc,
    MoreResources, ResourceMessage, Unregistered,
};
use windlass_protocol::{
    AgentId, BadBody, Bytes, InformantVersion, MilliCpu, Resources, Sequence, Versions,
};

const ID: AgentId = AgentId::from_u128(0x9f0f6c1e_2f0b_4f3b_9c55_0a4f7c2f6a10);

#[test]
fn informant_v2_0_registration() {
    let versions = Versions { min: InformantVersion::from_number(1), max: InformantVersion::V2_0 };
    let desc = AgentDesc { agent_id: ID, serve_addr: "10.244.1.7:40123".into(), versions };
    check("informant-v2.0-agent-desc.json", &desc, AgentDesc::encode, AgentDesc::decode);
    let informant = |metrics_port| InformantDesc { version: InformantVersion::V2_0, metrics_port };
    for (file, desc) in [
        ("informant-v2.0-informant-desc.json", informant(Some(9100))),
        ("informant-v2.0-informant-desc-without-metrics.json", informant(None)),
    ] {
        check(file, &desc, InformantDesc::encode, InformantDesc::decode_reply);
    }
    let unregistered = Unregistered { was_active: true };
    let file = "informant-v2.0-unregistered.json";
    check(file, &unregistered, Unregistered::encode, Unregistered::decode_reply);
}

#[test]
fn informant_v2_0_call_backs() {
    let identified = Identified { id: ID, sequence: Sequence::from_number(7) };
    let file = "informant-v2.0-identified.json";
    check(file, &identified, Identified::encode, Identified::decode_reply);
    let file = "informant-v2.0-expected.json";
    check(file, &Expected(ID), Expected::encode, Expected::decode);
    let more = MoreResources { expected: ID, cpu: false, memory: true };
    let file = "informant-v2.0-more-resources.json";
    check(file, &more, MoreResources::encode, MoreResources::decode);
}

#[test]
fn informant_v2_0_sizes() {
    let file = "informant-v2.0-health-check.json";
    check(file, &HealthCheck(ID), HealthCheck::encode, HealthCheck::decode);
    check("informant-v2.0-empty.json", &Empty, Empty::encode, Empty::decode_reply);
    let message = |cpu, mem, sequence| ResourceMessage {
        resources: Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) },
        id: ID,
        sequence: Sequence::from_number(sequence),
    };
    for (file, message) in [
        ("informant-v2.0-resource-message.json", message(500, 2 << 30, 8)),
        (
            "informant-v2.0-resource-message-odd.json",
            message(1_024_000, (1536 << 20) + 1, u64::MAX),
        ),
    ] {
        check(file, &message, ResourceMessage::encode, ResourceMessage::decode_any);
    }
    for (file, ok, status) in [
        (
            "informant-v2.0-downscale-agreed.json",
            true,
            "Set file cache size to 1189 MiB; Set cgroup memory.high to 659 MiB, of new max 759 \
             MiB",
        ),
        (
            "informant-v2.0-downscale-declined.json",
            false,
            "Calculated memory.high too low: 659 MiB (new high) < 800 MiB (current usage) + 100 \
             MiB (buffer)",
        ),
    ] {
        let result = DownscaleResult { ok, status: status.into() };
        check(file, &result, DownscaleResult::encode, DownscaleResult::decode_reply);
    }
}

#[test]
fn every_golden_file_is_checked() {
    let tests = concat!(
        include_str!("golden.rs"),
        include_str!("golden/informant_v1.rs"),
        include_str!("golden_plugin.rs"),
        include_str!("golden_extender.rs"),
    );
    for file in std::fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(tests.contains(&format!("\"{name}\"")), "{name} is checked by no test");
    }
}

fn check<T: Debug + PartialEq>(
    file: &str,
    message: &T,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, BadBody>,
) {
    let golden = std::fs::read_to_string(folder().join(file)).unwrap();
    assert_eq!(String::from_utf8(encode(message)).unwrap(), golden, "{file}");
    assert_eq!(&decode(golden.as_bytes()).unwrap(), message, "{file}");
}

fn folder() -> &'static Path {
    Path::new("golden")
}
