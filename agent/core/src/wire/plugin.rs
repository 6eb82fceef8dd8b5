//! What an agent says to the plugin: how much its VM has or should get.

use super::WireError;
use crate::event::{Asking, Event, Failure};
use windlass_protocol::plugin::{Metrics, OverRange, PermitRequest, PermitResponse, Told};
use windlass_protocol::{Bytes, Resources, VmInfo, words};
use windlass_scaling::Sample;

/// What a request that does not fit the wire comes to: it is refused before it is sent.
pub const UNSAID: Failure = Failure::Refused(400);

/// What the reference adds to the memory in use for the guest's kernel.
const KERNEL: Bytes = Bytes::from_mib(100);

/// As much of a refusal is looked at, in characters.
const MOST_WORDS: usize = 200;

/// The body of a request for a permit.
///
/// # Errors
/// If an amount does not fit the wire.
pub fn to_plugin(
    info: &VmInfo,
    asking: &Asking,
    sample: Option<&Sample>,
) -> Result<Vec<u8>, OverRange> {
    to_plugin_telling(info, asking, sample, None)
}

/// The same, with what the plugin is to show people.
///
/// # Errors
/// If an amount does not fit the wire.
pub fn to_plugin_telling(
    info: &VmInfo,
    asking: &Asking,
    sample: Option<&Sample>,
    told: Option<Told>,
) -> Result<Vec<u8>, OverRange> {
    let unit = Resources::from(asking.unit);
    let request = PermitRequest {
        version: asking.version,
        vm: info.name.clone(),
        // A plugin refuses a unit that has parts of a slot.
        unit: Some(Resources { mem: unit.mem.round_up(info.memory_slot), ..unit }),
        resources: asking.resources,
        last_permit: asking.last_permit,
        metrics: sample.and_then(metrics),
        told: told.map(Box::new),
    };
    request.encode(info.memory_slot)
}

/// What the answer to a request for a permit says.
///
/// # Errors
/// If it is a refusal, which is any status but 200, or not an answer to that request.
pub fn from_plugin(
    info: &VmInfo,
    asking: &Asking,
    status: u16,
    body: &[u8],
) -> Result<Event, WireError> {
    if status != 200 {
        return Err(refusal(status, body));
    }
    let response = PermitResponse::decode(asking.version, body, info.memory_slot)?;
    Ok(match response.migrate {
        true => Event::MustStay(response.permit),
        false => Event::Permitted(response.permit),
    })
}

/// A refusal in the reference's words. One that does not know a version may not get as far as the
/// version: what it cannot read is "bad JSON" to it.
fn refusal(status: u16, body: &[u8]) -> WireError {
    let words = words::sanitized(&String::from_utf8_lossy(body), MOST_WORDS);
    let lower = words.to_ascii_lowercase();
    match status {
        400 if lower.starts_with("bad json") || lower.contains("protocol version") => {
            WireError::Version(words)
        }
        400 if lower.starts_with("cannot change resources") => WireError::Moving,
        _ => WireError::Refused(status),
    }
}

/// The reference's figures; what the guest does not report is not made up.
fn metrics(sample: &Sample) -> Option<Metrics> {
    let used = sample.total.zip(sample.available);
    let used =
        used.map(|(total, available)| total.saturating_sub(available).saturating_add(KERNEL));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "the wire has 32-bit floats"
    )]
    Some(Metrics {
        load_1m: sample.loads.one_minute? as f32,
        load_5m: sample.loads.five_minutes.map(|load| load as f32),
        memory_usage: used.map(|used| used.bytes() as f32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::plugin::RawRequest;
    use windlass_protocol::vm::{Bounds, LoadWindow, Mode, Policy, Target};
    use windlass_protocol::{ComputeUnit, MilliCpu, Moment, PluginVersion, VmName};
    use windlass_scaling::Loads;

    #[test]
    fn the_plugin_reads_what_the_vm_should_get_in_every_version() {
        let known = Loads { one_minute: Some(0.5), five_minutes: Some(0.25), ..Loads::default() };
        let half = Loads { five_minutes: None, ..known };
        let odd = Loads { one_minute: Some(1e300), ..known };
        for version in PluginVersion::known() {
            let features = version.features();
            for (loads, known) in [(known, true), (half, !features.five_minutes), (odd, false)] {
                let sample = Sample {
                    loads,
                    total: Some(Bytes::from_gib(2)),
                    available: Some(Bytes::from_gib(1)),
                    ..Sample::empty(Moment::default())
                };
                let asking = Asking { last_permit: Some(size(1000, 256)), ..asking(version) };
                let body = to_plugin(&info(), &asking, Some(&sample)).unwrap();
                let raw = RawRequest::decode(&body).unwrap();
                assert_eq!((raw.version(), raw.vm()), (version, &info().name));
                assert_eq!(raw.check(), Ok(()), "{version}");
                let request = raw.with_slot(info().memory_slot).unwrap();
                let mem = if features.memory_in_bytes { 300 } else { 384 };
                let cpu = if features.fractional_cpu { 1500 } else { 2000 };
                assert_eq!(request.resources, size(cpu, mem), "{version}: in whole slots and CPUs");
                let last = features.last_permit.then_some(size(1000, 256));
                assert_eq!(request.last_permit, last, "{version}");
                let unit = features.agent_sends_unit.then_some(size(1000, 384));
                assert_eq!(request.unit, unit, "{version}: in whole slots");
                let load = request.metrics.map(|metrics| metrics.load_1m);
                let unknown = (!features.metrics_may_be_missing).then_some(2.0);
                assert_eq!(load, if known { Some(0.5) } else { unknown }, "{version}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_said() {
        for (resources, text) in [
            (size(u64::MAX, 1), "resources: 18446744073709551.615 vCPU is more"),
            (size(1, 128 * 65_536), "resources: 8192GiB is more than 65535 slots of 128MiB"),
        ] {
            let asking = Asking { resources, ..asking(PluginVersion::V2_0) };
            let error = to_plugin(&info(), &asking, None).unwrap_err().to_string();
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn an_answer_is_a_permit_in_the_version_of_the_request() {
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_gib(1)).unwrap();
        let permit = size(1000, 512);
        for version in PluginVersion::known() {
            for (migrate, event) in
                [(false, Event::Permitted(permit)), (true, Event::MustStay(permit))]
            {
                let response = PermitResponse { permit, migrate };
                let body = response.encode(version, info().memory_slot, unit).unwrap();
                let heard = from_plugin(&info(), &asking(version), 200, &body);
                assert_eq!(heard, Ok(event), "{version}");
            }
        }
    }

    #[test]
    fn every_other_status_is_a_refusal_and_a_broken_body_no_answer() {
        let asking = asking(PluginVersion::V2_0);
        for status in [0, 204, 302, 400, 404, 500] {
            let error = from_plugin(&info(), &asking, status, b"{}").unwrap_err();
            assert_eq!(error.failure(), Failure::Refused(status));
        }
        for body in ["", "{", "[]", "{}{}", r#"{"permit":{"vCPUs":-1,"mem":1}}"#] {
            let error = from_plugin(&info(), &asking, 200, body.as_bytes()).unwrap_err();
            assert!(matches!(error, WireError::Broken(_)), "{body}: {error}");
            assert_eq!(error.failure(), Failure::NoAnswer, "{body}");
        }
    }

    #[test]
    fn the_reference_s_words_say_what_a_refusal_is_about() {
        let asking = asking(PluginVersion::V5_0);
        for (status, words, failure) in [
            (400, "Protocol version mismatch: Need v1.0 to v2.0 but got v5.0", Failure::Version),
            (400, "Invalid protocol version <invalid: zero>", Failure::Version),
            (400, "bad JSON", Failure::Version),
            (
                400,
                "non-nil metrics.{loadAvg5M,memoryUsageBytes} not supported for protocol version",
                Failure::Version,
            ),
            (
                400,
                "cannot change resources: agent has already been informed that pod is migrating",
                Failure::Moving,
            ),
            (400, "computeUnit is not divisible by VM memory slot", Failure::Refused(400)),
            (404, "pod not found", Failure::Refused(404)),
            (500, "bad JSON", Failure::Refused(500)),
        ] {
            let error = from_plugin(&info(), &asking, status, words.as_bytes()).unwrap_err();
            assert_eq!(error.failure(), failure, "{words}: {error}");
        }
    }

    fn asking(version: PluginVersion) -> Asking {
        let unit = ComputeUnit::new(MilliCpu::from_cores(1), Bytes::from_mib(300)).unwrap();
        Asking { version, resources: size(1500, 300), last_permit: None, unit }
    }

    fn size(milli: u64, mib: u64) -> Resources {
        Resources { cpu: MilliCpu::from_milli(milli), mem: Bytes::from_mib(mib) }
    }

    fn info() -> VmInfo {
        VmInfo {
            name: VmName::on_host("a"),
            bounds: Bounds { min: size(250, 256), max: size(4000, 4096) },
            target: Target::default(),
            policy: Policy::LoadAverage,
            load_window: LoadWindow::OneMinute,
            priority: 0,
            mode: Mode::Act,
            memory_slot: Bytes::from_mib(128),
            paused_until: None,
            scale_down: windlass_protocol::ScaleDown::AT_ONCE,
            cpu_limit: None,
        }
    }
}
