//! Every message between agent and plugin, in every version, byte for byte as the reference
//! writes it.
//!
//! The files were written by the types of the reference's releases that spoke the version last:
//! v0.6.0 for v1.0 and v1.1, v0.12.2 for v2.0, v0.20.0 for v2.1, v0.22.0 for v3.0, v0.25.0 for
//! v4.0, v0.28.0 for v5.0. They are added, never edited. Each is what our message encodes to, and
//! decodes to what of it reaches a core.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use windlass_protocol::plugin::{Metrics, PermitRequest, PermitResponse, RawRequest, Told, Why};
use windlass_protocol::{Bytes, ComputeUnit, MilliCpu, PluginVersion, Resources, VmName};

const SLOT: Bytes = Bytes::from_gib(1);
const POD: (&str, &str) = ("default", "vm-a-x7k2p");
const ODD: (&str, &str) = ("a<b>&c", "\"\\\u{2028}\n\u{1}é");
const QUIET: Option<Metrics> = metrics(0.21, 0.4, 520_000_000.0);
const TINY: Option<Metrics> = metrics(1e-7, 3e21, 1_125_899_906_842_624.0);

#[test]
fn plugin_v1_0() {
    let busy = metrics(1.53, 0.9, f32::NAN);
    let most = size(65_535_000, 65_535);
    let version = PluginVersion::V1_0;
    request("plugin-v1.0-request.json", version, POD, size(2000, 8), None, busy);
    request("plugin-v1.0-request-extremes.json", version, ODD, most, None, TINY);
    response("plugin-v1.0-response.json", version, size(3500, 12), false);
    response("plugin-v1.0-response-migrate.json", version, size(3000, 12), true);
}

#[test]
fn plugin_v1_1() {
    let busy = metrics(1.53, 0.9, f32::NAN);
    let most = size(65_535_000, 65_535);
    let version = PluginVersion::V1_1;
    request("plugin-v1.1-request.json", version, POD, size(2000, 8), None, busy);
    request("plugin-v1.1-request-without-metrics.json", version, POD, size(2000, 8), None, None);
    request("plugin-v1.1-request-extremes.json", version, ODD, most, None, TINY);
    response("plugin-v1.1-response.json", version, size(3000, 12), false);
    response("plugin-v1.1-response-migrate.json", version, size(3999, 12), true);
}

#[test]
fn plugin_v2_0() {
    let most = size(u64::from(u32::MAX), 65_535);
    let version = PluginVersion::V2_0;
    request("plugin-v2.0-request.json", version, POD, size(250, 1), None, QUIET);
    request("plugin-v2.0-request-without-metrics.json", version, POD, size(2000, 8), None, None);
    request("plugin-v2.0-request-extremes.json", version, ODD, most, None, TINY);
    response("plugin-v2.0-response.json", version, size(1500, 6), false);
    let (permit, unit) = (size(1500, 6), size(1000, 4));
    response_with("plugin-v2.0-response-migrate.json", version, permit, true, unit);
}

#[test]
fn plugin_v2_1() {
    let most = size(u64::from(u32::MAX), 65_535);
    let (version, wanted, last) = (PluginVersion::V2_1, size(1250, 5), Some(size(500, 2)));
    request("plugin-v2.1-request.json", version, POD, wanted, last, QUIET);
    request("plugin-v2.1-request-without-permit.json", version, POD, wanted, None, QUIET);
    request("plugin-v2.1-request-without-metrics.json", version, POD, wanted, last, None);
    let nothing = Some(Resources::ZERO);
    request("plugin-v2.1-request-extremes.json", version, ODD, most, nothing, TINY);
    response("plugin-v2.1-response.json", version, size(1500, 6), false);
    response("plugin-v2.1-response-migrate.json", version, size(1500, 6), true);
}

#[test]
fn plugin_v3_0() {
    let most = size(u64::from(u32::MAX), 65_535);
    let (version, wanted, last) = (PluginVersion::V3_0, size(1250, 5), Some(size(500, 2)));
    request("plugin-v3.0-request.json", version, POD, wanted, last, QUIET);
    request("plugin-v3.0-request-without-permit.json", version, POD, wanted, None, QUIET);
    request("plugin-v3.0-request-without-metrics.json", version, POD, wanted, last, None);
    let nothing = Some(Resources::ZERO);
    request("plugin-v3.0-request-extremes.json", version, ODD, most, nothing, TINY);
    response("plugin-v3.0-response.json", version, size(1500, 6), false);
    response("plugin-v3.0-response-migrate.json", version, size(1500, 6), true);
}

#[test]
fn plugin_v4_0() {
    let version = PluginVersion::V4_0;
    let (wanted, last) = (size(1250, 5), Some(bytes(500, 1536 << 20)));
    request("plugin-v4.0-request.json", version, POD, wanted, last, QUIET);
    request("plugin-v4.0-request-without-permit.json", version, POD, wanted, None, QUIET);
    request("plugin-v4.0-request-without-metrics.json", version, POD, wanted, last, None);
    let most = bytes(u64::from(u32::MAX), i64::MAX.unsigned_abs());
    let nothing = Some(Resources::ZERO);
    request("plugin-v4.0-request-extremes.json", version, ODD, most, nothing, TINY);
    let last = Some(bytes(1, 1024));
    request("plugin-v4.0-request-small.json", version, POD, bytes(1, 1023), last, QUIET);
    response("plugin-v4.0-response.json", version, size(1500, 6), false);
    let permit = bytes(1500, 1000 << 20);
    response("plugin-v4.0-response-migrate.json", version, permit, true);
}

#[test]
fn plugin_v5_0() {
    let version = PluginVersion::V5_0;
    let (wanted, last) = (size(1250, 5), Some(bytes(500, 1536 << 20)));
    request("plugin-v5.0-request.json", version, POD, wanted, last, QUIET);
    request("plugin-v5.0-request-without-permit.json", version, POD, wanted, None, QUIET);
    request("plugin-v5.0-request-without-metrics.json", version, POD, wanted, last, None);
    let most = bytes(u64::from(u32::MAX), i64::MAX.unsigned_abs());
    let nothing = Some(Resources::ZERO);
    request("plugin-v5.0-request-extremes.json", version, ODD, most, nothing, TINY);
    let last = Some(bytes(1, 1024));
    request("plugin-v5.0-request-small.json", version, POD, bytes(1, 1023), last, QUIET);
    response("plugin-v5.0-response.json", version, size(1500, 6), false);
    let permit = bytes(1500, 1000 << 20);
    response("plugin-v5.0-response-migrate.json", version, permit, true);
}

/// No release of the reference writes this: it is ours.
#[test]
fn a_request_that_tells_people_of_its_vm() {
    let golden = std::fs::read(folder().join("plugin-v5.0-request-told.json")).unwrap();
    let words = "No informant in the guest speaks for the VM, so it does not grow.";
    let said = PermitRequest {
        version: PluginVersion::V5_0,
        vm: VmName::on_host("vm1"),
        unit: Some(size(250, 1)),
        resources: size(2000, 2),
        last_permit: None,
        metrics: None,
        told: Some(Box::new(Told::new(Some(size(3000, 3)), Why::NoInformant, words))),
    };
    assert_eq!(said.encode(SLOT).unwrap(), golden);
    assert_eq!(RawRequest::decode(&golden).unwrap().with_slot(SLOT), Ok(said));
}

/// What a version says of a request is what is read of it, and no more.
fn request(
    file: &str,
    version: PluginVersion,
    (namespace, name): (&str, &str),
    resources: Resources,
    last_permit: Option<Resources>,
    metrics: Option<Metrics>,
) {
    let vm = VmName { namespace: namespace.into(), name: name.into() };
    let unit = Some(size(250, 1));
    let said = PermitRequest { version, vm, unit, resources, last_permit, metrics, told: None };
    let golden = std::fs::read_to_string(folder().join(file)).unwrap();
    assert_eq!(String::from_utf8(said.encode(SLOT).unwrap()).unwrap(), golden, "{file}");

    let features = version.features();
    let read = RawRequest::decode(golden.as_bytes()).unwrap();
    assert_eq!(read.check(), Ok(()), "{file}");
    let latest = |metrics: Metrics| Metrics { load_5m: None, memory_usage: None, ..metrics };
    let meant = PermitRequest {
        unit: unit.filter(|_| features.agent_sends_unit),
        last_permit: last_permit.filter(|_| features.last_permit),
        metrics: metrics.map(latest),
        ..said
    };
    assert_eq!(read.with_slot(SLOT), Ok(meant), "{file}");
}

fn response(file: &str, version: PluginVersion, permit: Resources, migrate: bool) {
    response_with(file, version, permit, migrate, size(250, 1));
}

fn response_with(
    file: &str,
    version: PluginVersion,
    permit: Resources,
    migrate: bool,
    unit: Resources,
) {
    let said = PermitResponse { permit, migrate };
    let unit = ComputeUnit::try_from(unit).unwrap();
    let golden = std::fs::read_to_string(folder().join(file)).unwrap();
    let body = said.encode(version, SLOT, unit).unwrap();
    assert_eq!(String::from_utf8(body).unwrap(), golden, "{file}");

    assert_eq!(golden.contains("resourceUnit"), version.features().plugin_sends_unit, "{file}");
    let whole = match version.features().fractional_cpu {
        true => permit,
        false => Resources { cpu: permit.cpu.round_down(MilliCpu::from_cores(1)), ..permit },
    };
    let meant = PermitResponse { permit: whole, migrate };
    assert_eq!(PermitResponse::decode(version, golden.as_bytes(), SLOT), Ok(meant), "{file}");
}

const fn metrics(load_1m: f32, load_5m: f32, memory: f32) -> Option<Metrics> {
    Some(Metrics { load_1m, load_5m: Some(load_5m), memory_usage: Some(memory) })
}

fn folder() -> &'static Path {
    Path::new("golden")
}

fn size(milli: u64, slots: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: SLOT.saturating_mul(slots) }
}

fn bytes(milli: u64, bytes: u64) -> Resources {
    Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_bytes(bytes) }
}
