//! Values from a version that does not exist yet: ignored or refused in words, never a panic.

use std::collections::BTreeMap;
use windlass_protocol::annotations::{Annotations, Defaults, MODE, POLICY};
use windlass_protocol::informant::{DownscaleResult, InformantDesc, ResourceMessage};
use windlass_protocol::plugin::{PermitResponse, RawRequest};
use windlass_protocol::{
    Bounds, Bytes, InformantVersion, MilliCpu, Mode, PluginVersion, Policy, Resources, Versions,
    VmInfo, VmName,
};

#[test]
fn a_version_without_a_name_prints() {
    for number in [8, 9, 1000, u32::MAX] {
        let text = PluginVersion::from_number(number).to_string();
        assert_eq!(text, format!("<unknown = v5.0 + {}>", number - 7));
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
fn what_a_later_plugin_request_says_is_read_as_far_as_it_is_known() {
    let later = r#"{"protoVersion":9,"pod":{"namespace":"default","name":"a","uid":"1"},
        "computeUnit":{"vCPUs":"250m","mem":"1Gi","gpus":1},
        "resources":{"vCPUs":1,"mem":"4Gi"},"lastPermit":null,"metrics":{"psi":0.2},"x":[]}"#;
    let request = RawRequest::decode(later.as_bytes()).unwrap();
    assert_eq!(request.version(), PluginVersion::from_number(9));
    let request = request.with_slot(Bytes::from_gib(1)).unwrap();
    assert_eq!(request.resources.mem, Bytes::from_gib(4));
}

#[test]
fn fields_that_are_not_known_yet_are_ignored() {
    let slot = Bytes::from_gib(1);
    let response = r#"{"permit":{"vCPUs":1,"mem":4,"gpus":[1]},"migrate":{"to":"n2"},"until":{}}"#;
    for version in PluginVersion::known() {
        let response = PermitResponse::decode(version, response.as_bytes(), slot).unwrap();
        assert!(response.migrate);
        assert_eq!(response.permit.cpu, MilliCpu::from_cores(1));
    }

    let desc = r#"{"protoVersion":9,"metricsMethod":{"otlp":{"port":4317}},"features":["x"]}"#;
    let desc = InformantDesc::decode_reply(desc.as_bytes()).unwrap();
    assert_eq!((desc.version.number(), desc.metrics_port), (9, None));

    let result = r#"{"Ok":true,"Status":"fine","Until":"2030-01-01T00:00:00Z"}"#;
    assert!(DownscaleResult::decode_reply(result.as_bytes()).unwrap().ok);

    let message = r#"{"data":{"cpu":"1","memory":"1Gi","swap":"1Gi","id":{"agentID":
        "9f0f6c1e-2f0b-4f3b-9c55-0a4f7c2f6a10","epoch":4}},"sequenceNumber":1}"#;
    assert_eq!(
        ResourceMessage::decode_any(message.as_bytes()).unwrap().resources.cpu,
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
        scale_down: windlass_protocol::ScaleDownSaid::default(),
        cpu_limit: None,
        usual: windlass_protocol::Usual::default(),
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
