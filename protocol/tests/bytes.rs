//! Any bytes at all are read without a panic, and what we write is read as it was meant.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use windlass_protocol::annotations::{self, Annotations};
use windlass_protocol::informant::{
    AgentDesc, DownscaleResult, Empty, Expected, HealthCheck, Identified, InformantDesc,
    MoreResources, ResourceMessage, Unregistered,
};
use windlass_protocol::plugin::{LoadMetrics, PermitRequest, PermitResponse, SlotRequest};
use windlass_protocol::{
    AgentId, BadBody, Bytes, InformantVersion, MilliCpu, PluginVersion, Resources, Sequence,
    Versions, VmName, quantity,
};

const SLOT: Bytes = Bytes::from_mib(128);

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(body in vec(any::<u8>(), 0..300)) {
        read_as_everything(&body);
    }

    /// Bytes that are nearly a message reach further than random ones.
    #[test]
    fn damaged_messages_never_panic(
        message in 0..GOLDEN.len(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = GOLDEN[message].as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        read_as_everything(&body);
        body.truncate(cut.index(body.len()));
        read_as_everything(&body);
    }

    /// So do texts made of JSON's own signs.
    #[test]
    fn scrambled_signs_never_panic(
        signs in vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d83d", "-", "1", "e", ".", "null",
            "true", "\"cpu\"", "\"data\"", "\"pod\"", "\"resources\"", "\"mem\"", " ", "\u{17f}",
        ]), 0..40),
    ) {
        read_as_everything(signs.concat().as_bytes());
    }

    #[test]
    fn arbitrary_quantities_never_panic(text in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,20}") {
        let _ = (quantity::cpu(&text), quantity::memory(&text));
    }

    #[test]
    fn what_an_agent_writes_is_read_as_it_was_meant(
        id in any::<u128>(), sequence in any::<u64>(), text in any::<String>(),
        min in any::<u32>(), max in any::<u32>(),
        cpu in 0..=i64::MAX as u64, mem in 0..=i64::MAX as u64,
    ) {
        let id = AgentId::from_u128(id);
        let versions = Versions {
            min: InformantVersion::from_number(min),
            max: InformantVersion::from_number(max),
        };
        let desc = AgentDesc { agent_id: id, serve_addr: text, versions };
        prop_assert_eq!(AgentDesc::decode(&desc.encode()), Ok(desc));
        let message = ResourceMessage {
            resources: Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) },
            id,
            sequence: Sequence::from_number(sequence),
        };
        prop_assert_eq!(ResourceMessage::decode(&message.encode()), Ok(message));
        let identified = Identified { id, sequence: Sequence::from_number(sequence) };
        prop_assert_eq!(Identified::decode_reply(&identified.encode()), Ok(identified));
        prop_assert_eq!(HealthCheck::decode(&HealthCheck(id).encode()), Ok(HealthCheck(id)));
    }

    #[test]
    fn what_an_informant_writes_is_read_as_it_was_meant(
        id in any::<u128>(), port in any::<Option<u16>>(), version in any::<u32>(),
        status in any::<String>(), yes in any::<bool>(), no in any::<bool>(),
    ) {
        let expected = AgentId::from_u128(id);
        let desc =
            InformantDesc { version: InformantVersion::from_number(version), metrics_port: port };
        prop_assert_eq!(InformantDesc::decode_reply(&desc.encode()), Ok(desc));
        let result = DownscaleResult { ok: yes, status };
        prop_assert_eq!(DownscaleResult::decode_reply(&result.encode()), Ok(result));
        let more = MoreResources { expected, cpu: yes, memory: no };
        prop_assert_eq!(MoreResources::decode(&more.encode()), Ok(more));
        prop_assert_eq!(Expected::decode(&Expected(expected).encode()), Ok(Expected(expected)));
        let unregistered = Unregistered { was_active: yes };
        prop_assert_eq!(Unregistered::decode_reply(&unregistered.encode()), Ok(unregistered));
        prop_assert_eq!(Empty::decode_reply(&Empty.encode()), Ok(Empty));
    }

    /// Memory is rounded up to slots in a request and down in a permit: more is never promised
    /// than is meant, less never reported than there is.
    #[test]
    fn slots_round_to_the_safe_side(
        namespace in any::<String>(), name in any::<String>(),
        cpu in cpu(), mem in any::<u64>(), slot in slot(),
        load in any::<Option<(f32, f32)>>(),
    ) {
        let slot = Bytes::from_bytes(slot);
        let resources = Resources { cpu: MilliCpu::from_milli(cpu), mem: Bytes::from_bytes(mem) };
        let vm = VmName { namespace, name };
        let metrics = load.map(|(load_1m, load_5m)| LoadMetrics { load_1m, load_5m });
        let request =
            PermitRequest { version: PluginVersion::V2_0, vm: vm.clone(), resources, metrics };
        match request.encode(slot) {
            Ok(body) => {
                let read = SlotRequest::decode(&body).unwrap();
                prop_assert_eq!(&read.vm, &vm);
                prop_assert_eq!(read.cpu, resources.cpu);
                let finite = |m: &LoadMetrics| m.load_1m.is_finite() && m.load_5m.is_finite();
                prop_assert_eq!(read.metrics, metrics.filter(finite));
                prop_assert!(read.resources(slot).mem >= resources.mem);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        let response = PermitResponse { permit: resources, migrate: false, unit: Resources::ZERO };
        if let Ok(body) = response.encode(slot) {
            let read = PermitResponse::decode(&body, slot).unwrap();
            prop_assert!(read.permit.mem <= resources.mem);
            prop_assert!(read.permit.mem.saturating_add(slot) >= resources.mem);
        }
    }
}

/// CPU that the wire has room for, and now and then more.
fn cpu() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..=u64::from(u32::MAX), 1 => any::<u64>()]
}

/// Slots so large that few are needed, so small that they do not fit, and of no size.
fn slot() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0_u64..1 << 48]
}

const GOLDEN: [&str; 8] = [
    include_str!("../golden/informant-v2.0-agent-desc.json"),
    include_str!("../golden/informant-v2.0-informant-desc.json"),
    include_str!("../golden/informant-v2.0-resource-message.json"),
    include_str!("../golden/informant-v2.0-more-resources.json"),
    include_str!("../golden/informant-v2.0-downscale-declined.json"),
    include_str!("../golden/plugin-v2.0-request.json"),
    include_str!("../golden/plugin-v2.0-request-extremes.json"),
    include_str!("../golden/plugin-v2.0-response-migrate.json"),
];

fn read_as_everything(body: &[u8]) {
    let errors: [Option<BadBody>; 14] = [
        AgentDesc::decode(body).err(),
        InformantDesc::decode_reply(body).err(),
        Identified::decode_reply(body).err(),
        Expected::decode(body).err(),
        MoreResources::decode(body).err(),
        HealthCheck::decode(body).err(),
        ResourceMessage::decode(body).err(),
        ResourceMessage::decode_any(body).err(),
        DownscaleResult::decode_reply(body).err(),
        Unregistered::decode_reply(body).err(),
        Empty::decode(body).err(),
        SlotRequest::decode(body).err(),
        PermitResponse::decode(body, SLOT).err(),
        PermitResponse::decode(body, Bytes::ZERO).err(),
    ];
    for error in errors.into_iter().flatten() {
        let text = error.to_string();
        assert!(text.chars().count() < 250, "an error is short: {text}");
        assert!(!text.contains(char::is_control), "an error is harmless: {text:?}");
    }
    let text = String::from_utf8_lossy(body).into_owned();
    let names = [
        annotations::BOUNDS,
        annotations::THEIR_BOUNDS,
        annotations::CONFIG,
        annotations::THEIR_CONFIG,
        annotations::PAUSED_UNTIL,
        annotations::PRIORITY,
    ];
    let all: BTreeMap<_, _> = names.map(|name| (name.to_owned(), text.clone())).into();
    Annotations::default().update(&all, SLOT);
}
