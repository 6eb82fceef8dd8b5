//! Values from a version that does not exist yet: ignored or refused in words, never a panic.

use std::collections::BTreeMap;
use windlass_protocol::annotations::{Annotations, Defaults, MODE, POLICY};
use windlass_protocol::informant::{DownscaleResult, InformantDesc, ResourceMessage};
use windlass_protocol::plugin::{PermitResponse, SlotRequest};
use windlass_protocol::{
    Bounds, Bytes, InformantVersion, MilliCpu, Mode, PluginVersion, Policy, Resources, Versions,
    VmInfo, VmName,
};

#[test]
fn a_version_without_a_name_prints() {
    for number in [4, 5, 6, 7, 1000, u32::MAX] {
        let text = PluginVersion::from_number(number).to_string();
        assert_eq!(text, format!("<unknown = v2.0 + {}>", number - 3));
    }
    for number in [5, 6, u32::MAX] {
        let version = InformantVersion::from_number(number);
        assert_eq!(version.to_string(), format!("<unknown = v2.0 + {}>", number - 4));
        assert!(format!("{version:?}").contains(&number.to_string()));
    }
}

#[test]
fn a_peer_from_the_future_shares_what_we_speak() {
    let ours = InformantVersion::SPOKEN;
    let wider = Versions { min: ours.min, max: InformantVersion::from_number(99) };
    assert_eq!(ours.latest_shared(wider), Some(InformantVersion::V2_0));
    let later = Versions::only(InformantVersion::from_number(99));
    assert_eq!(ours.latest_shared(later), None);
    assert!(!ours.contains(InformantVersion::from_number(99)));
}

#[test]
fn what_later_plugin_requests_say_is_read_as_far_as_it_is_known() {
    let v2_1 = r#"{"protoVersion":4,"pod":{"namespace":"default","name":"a"},
        "resources":{"vCPUs":1,"mem":4},"lastPermit":{"vCPUs":"500m","mem":2},
        "metrics":{"loadAvg1M":0.2,"loadAvg5M":0.1,"memoryUsageBytes":520000000}}"#;
    let request = SlotRequest::decode(v2_1.as_bytes()).unwrap();
    assert_eq!(request.version, PluginVersion::from_number(4));
    assert_eq!((request.cpu, request.slots), (MilliCpu::from_cores(1), 4));
    // From v4.0 on memory counts in bytes, which no slot can hold.
    let v4_0 = r#"{"protoVersion":6,"pod":{"namespace":"default","name":"a"},
        "computeUnit":{"vCPUs":"250m","mem":"1Gi"},"resources":{"vCPUs":1,"mem":"4Gi"},
        "lastPermit":null,"metrics":null}"#;
    let error = SlotRequest::decode(v4_0.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("resources.mem: \"4Gi\" is not a whole number"), "{error}");
}

#[test]
fn fields_that_are_not_known_yet_are_ignored() {
    let slot = Bytes::from_gib(1);
    let response = r#"{"permit":{"vCPUs":1,"mem":4,"gpus":[1]},"migrate":{"to":"n2"},"until":{}}"#;
    let response = PermitResponse::decode(response.as_bytes(), slot).unwrap();
    assert!(response.migrate);
    assert_eq!(response.unit, Resources::ZERO, "v3.0 does not say the unit");

    let desc = r#"{"protoVersion":9,"metricsMethod":{"otlp":{"port":4317}},"features":["x"]}"#;
    let desc = InformantDesc::decode_reply(desc.as_bytes()).unwrap();
    assert_eq!((desc.version.number(), desc.metrics_port), (9, None));

    let result = r#"{"Ok":true,"Status":"fine","Until":"2030-01-01T00:00:00Z"}"#;
    assert!(DownscaleResult::decode_reply(result.as_bytes()).unwrap().ok);

    let message = r#"{"data":{"cpu":"1","memory":"1Gi","swap":"1Gi","id":{"agentID":
        "9f0f6c1e-2f0b-4f3b-9c55-0a4f7c2f6a10","epoch":4}},"sequenceNumber":1}"#;
    assert_eq!(
        ResourceMessage::decode(message.as_bytes()).unwrap().resources.cpu,
        MilliCpu::from_cores(1)
    );
}

#[test]
fn words_that_are_not_known_yet_leave_what_was_valid() {
    let size = |count| Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) };
    let defaults = Defaults {
        bounds: Some(Bounds { min: size(1), max: size(4) }),
        policy: None,
        load_window: None,
        priority: None,
        mode: None,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
    };
    let mut said = Annotations::default();
    let text = |mode: &str, policy: &str| {
        BTreeMap::from([(MODE.to_owned(), mode.to_owned()), (POLICY.to_owned(), policy.to_owned())])
    };
    assert_eq!(said.update(&text("observe", "load-average"), defaults.memory_slot), []);
    let errors = said.update(&text("dream", "oracle"), defaults.memory_slot);
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "windlass.dev/policy = \"oracle\": must be load-average",
            "windlass.dev/mode = \"dream\": must be act or observe",
        ]
    );
    let info = said.info(VmName::on_host("a"), &defaults).unwrap();
    assert_eq!((info.mode, info.policy), (Mode::Observe, Policy::LoadAverage));
}
