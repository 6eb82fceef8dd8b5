//! Any bytes at all are read without a panic, and what we write is read as it was meant.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use windlass_protocol::annotations::{self, Annotations};
use windlass_protocol::informant::{
    AgentDesc, DownscaleResult, Empty, Expected, HealthCheck, Identified, InformantDesc,
    MoreResources, ResourceMessage, Unregistered,
};
use windlass_protocol::plugin::{Metrics, PermitRequest, PermitResponse, RawRequest};
use windlass_protocol::{
    AgentId, BadBody, Bytes, ComputeUnit, InformantVersion, MilliCpu, PluginVersion, Resources,
    Sequence, Versions, VmName, quantity,
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
        prop_assert_eq!(ResourceMessage::decode_any(&message.encode()), Ok(message));
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

    /// What a VM has is rounded up in a request, and a permit down, in every version: more is
    /// never promised than is meant, less never reported than there is.
    #[test]
    fn slots_round_to_the_safe_side(
        version in version(), namespace in any::<String>(), name in any::<String>(),
        cpu in cpu(), mem in any::<u64>(), slot in slot(),
        load in any::<Option<(f32, f32, f32)>>(), last in any::<Option<(u32, u64)>>(),
    ) {
        let slot = Bytes::from_bytes(slot);
        let resources = size(cpu, mem);
        let last = last.map(|(cpu, mem)| size(u64::from(cpu), mem));
        let metrics = load.map(|(load_1m, load_5m, memory)| Metrics {
            load_1m,
            load_5m: Some(load_5m),
            memory_usage: Some(memory),
        });
        let unit = Some(Resources { mem: slot.max(Bytes::from_bytes(1)), ..size(1000, 0) });
        let vm = VmName { namespace, name };
        let request =
            PermitRequest { version, vm: vm.clone(), unit, resources, last_permit: last, metrics, told: None };
        match request.encode(slot) {
            Ok(body) => {
                let raw = RawRequest::decode(&body).unwrap();
                prop_assert_eq!((raw.version(), raw.vm()), (version, &vm));
                prop_assert_eq!(raw.check(), Ok(()));
                let read = raw.with_slot(slot).unwrap();
                prop_assert!(read.resources.covers(resources));
                prop_assert!(read.resources.cpu.saturating_sub(resources.cpu) < CORE);
                prop_assert!(version.features().memory_in_bytes == (read.unit == unit));
                match (read.last_permit, last) {
                    (Some(read), Some(last)) => prop_assert!(last.covers(read)),
                    (None, last) => {
                        prop_assert!(last.is_none() || !version.features().last_permit);
                    }
                    (Some(_), None) => prop_assert!(false, "made up"),
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        let response = PermitResponse { permit: resources, migrate: false };
        if let Ok(body) = response.encode(version, slot, UNIT) {
            let read = PermitResponse::decode(version, &body, slot).unwrap();
            prop_assert!(resources.covers(read.permit));
            prop_assert!(read.permit.mem.saturating_add(slot) >= resources.mem);
            prop_assert!(resources.cpu.saturating_sub(read.permit.cpu) < CORE);
        }
    }

    /// The metrics are said if all that the version says of them is known.
    #[test]
    fn what_is_not_known_of_the_load_is_not_made_up(
        version in version(), load_1m in any::<f32>(),
        load_5m in any::<Option<f32>>(), memory_usage in any::<Option<f32>>(),
    ) {
        let metrics = Some(Metrics { load_1m, load_5m, memory_usage });
        let (vm, unit) = (VmName::on_host("a"), Some(size(1000, 1 << 30)));
        let resources = size(3000, 1 << 30);
        let request = PermitRequest { version, vm, unit, resources, last_permit: None, metrics, told: None };
        let body = request.encode(SLOT).unwrap();
        let read = RawRequest::decode(&body).unwrap().with_slot(SLOT).unwrap();
        let known = |figure: Option<f32>| figure.is_some_and(f32::is_finite);
        let features = version.features();
        let all = load_1m.is_finite()
            && (known(load_5m) || !features.five_minutes)
            && (known(memory_usage) || !features.memory_usage);
        match read.metrics {
            Some(read) if all => prop_assert_eq!(read.load_1m, load_1m),
            None => prop_assert!(!all && features.metrics_may_be_missing),
            // v1.0 has no word for "not known": as busy as it has vCPUs.
            Some(read) => {
                prop_assert!(!features.metrics_may_be_missing);
                prop_assert_eq!(read.load_1m, 3.0);
            }
        }
    }
}

const CORE: MilliCpu = MilliCpu::from_cores(1);
const UNIT: ComputeUnit = match ComputeUnit::new(CORE, Bytes::from_gib(1)) {
    Some(unit) => unit,
    None => panic!("it has both axes"),
};

fn size(milli: u64, bytes: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_bytes(bytes) }
}

fn version() -> impl Strategy<Value = PluginVersion> {
    prop::sample::select(PluginVersion::known().collect::<Vec<_>>())
}

/// CPU that the wire has room for, and now and then more.
fn cpu() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..=u64::from(u32::MAX), 1 => any::<u64>()]
}

/// Slots so large that few are needed, so small that they do not fit, and of no size.
fn slot() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0_u64..1 << 48]
}

const GOLDEN: [&str; 13] = [
    include_str!("../golden/informant-v2.0-agent-desc.json"),
    include_str!("../golden/informant-v2.0-informant-desc.json"),
    include_str!("../golden/informant-v2.0-resource-message.json"),
    include_str!("../golden/informant-v2.0-more-resources.json"),
    include_str!("../golden/informant-v2.0-downscale-declined.json"),
    include_str!("../golden/plugin-v2.0-request.json"),
    include_str!("../golden/plugin-v2.0-request-extremes.json"),
    include_str!("../golden/plugin-v2.0-response-migrate.json"),
    include_str!("../golden/plugin-v1.0-request.json"),
    include_str!("../golden/plugin-v2.1-request.json"),
    include_str!("../golden/plugin-v4.0-request.json"),
    include_str!("../golden/plugin-v4.0-response.json"),
    include_str!("../golden/plugin-v5.0-request.json"),
];

fn read_as_everything(body: &[u8]) {
    let slots = [SLOT, Bytes::ZERO];
    let answers = PluginVersion::known()
        .flat_map(|version| slots.map(|slot| PermitResponse::decode(version, body, slot).err()));
    let requests = RawRequest::decode(body).map(|raw| {
        let _ = (raw.check(), raw.clone().with_slot(Bytes::ZERO), raw.with_slot(SLOT));
    });
    let errors: [Option<BadBody>; 11] = [
        AgentDesc::decode(body).err(),
        InformantDesc::decode_reply(body).err(),
        Identified::decode_reply(body).err(),
        Expected::decode(body).err(),
        MoreResources::decode(body).err(),
        HealthCheck::decode(body).err(),
        ResourceMessage::decode_any(body).err(),
        DownscaleResult::decode_reply(body).err(),
        Unregistered::decode_reply(body).err(),
        Empty::decode(body).err(),
        requests.err(),
    ];
    for error in errors.into_iter().chain(answers).flatten() {
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
