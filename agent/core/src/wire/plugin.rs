//! What an agent says to the plugin: how much its VM has or should get.

use super::Unheard;
use crate::event::{Event, Failure};
use windlass_protocol::plugin::{LoadMetrics, OverRange, PermitRequest, PermitResponse};
use windlass_protocol::version::PluginVersion;
use windlass_protocol::{Resources, VmInfo};
use windlass_scaling::Sample;

/// What a request that does not fit the wire comes to: it is refused before it is sent.
pub const UNSAID: Failure = Failure::Refused(400);

/// The body of a request for a permit.
///
/// # Errors
/// If an amount does not fit the wire.
pub fn to_plugin(
    info: &VmInfo,
    resources: Resources,
    sample: Option<&Sample>,
) -> Result<Vec<u8>, OverRange> {
    let request = PermitRequest {
        version: PluginVersion::V2_0,
        vm: info.name.clone(),
        resources,
        metrics: sample.and_then(load_metrics),
    };
    request.encode(info.memory_slot)
}

/// What the answer to a request for a permit says.
///
/// # Errors
/// If it is a refusal, which is any status but 200, or not an answer to that request.
pub fn from_plugin(info: &VmInfo, status: u16, body: &[u8]) -> Result<Event, Unheard> {
    if status != 200 {
        return Err(Unheard::Refused(status));
    }
    let response = PermitResponse::decode(body, info.memory_slot)?;
    Ok(Event::Permitted(response.permit))
}

/// The reference's two figures; what the guest does not report is not made up.
fn load_metrics(sample: &Sample) -> Option<LoadMetrics> {
    #[expect(clippy::cast_possible_truncation, reason = "the wire has 32-bit floats")]
    Some(LoadMetrics {
        load_1m: sample.loads.one_minute? as f32,
        load_5m: sample.loads.five_minutes? as f32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::plugin::SlotRequest;
    use windlass_protocol::vm::{Bounds, LoadWindow, Mode, Policy, Target};
    use windlass_protocol::{Bytes, MilliCpu, Moment, VmName};
    use windlass_scaling::Loads;

    #[test]
    fn the_plugin_reads_what_the_vm_should_get() {
        let known = Loads { one_minute: Some(0.5), five_minutes: Some(0.25), ..Loads::default() };
        let half = Loads { five_minutes: None, ..known };
        let odd = Loads { one_minute: Some(1e300), ..known };
        let metrics = LoadMetrics { load_1m: 0.5, load_5m: 0.25 };
        for (loads, metrics) in [(known, Some(metrics)), (half, None), (odd, None)] {
            let sample = Sample { loads, ..Sample::empty(Moment::default()) };
            let body = to_plugin(&info(), size(1500, 300), Some(&sample)).unwrap();
            let request = SlotRequest::decode(&body).unwrap();
            assert_eq!((request.version, &request.vm), (PluginVersion::V2_0, &info().name));
            assert_eq!(request.resources(info().memory_slot), size(1500, 384), "in whole slots");
            assert_eq!(request.metrics, metrics);
        }
        let body = to_plugin(&info(), size(1500, 300), None).unwrap();
        assert_eq!(SlotRequest::decode(&body).unwrap().metrics, None);
    }

    #[test]
    fn what_does_not_fit_is_not_said() {
        for (resources, text) in [
            (size(u64::MAX, 1), "resources: 18446744073709551.615 vCPU is more"),
            (size(1, 128 * 65_536), "resources: 8192GiB is more than 65535 slots of 128MiB"),
        ] {
            let error = to_plugin(&info(), resources, None).unwrap_err().to_string();
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn an_answer_is_a_permit() {
        let response =
            PermitResponse { permit: size(1000, 512), migrate: false, unit: size(1000, 1024) };
        let body = response.encode(info().memory_slot).unwrap();
        let heard = from_plugin(&info(), 200, &body);
        assert_eq!(heard, Ok(Event::Permitted(size(1000, 512))));
    }

    #[test]
    fn every_other_status_is_a_refusal_and_a_broken_body_no_answer() {
        for status in [0, 204, 302, 400, 404, 500] {
            let unheard = from_plugin(&info(), status, b"{}").unwrap_err();
            assert_eq!(unheard.failure(), Failure::Refused(status));
        }
        for body in ["", "{", "[]", "{}{}", r#"{"permit":{"vCPUs":-1,"mem":1}}"#] {
            let unheard = from_plugin(&info(), 200, body.as_bytes()).unwrap_err();
            assert!(matches!(unheard, Unheard::Broken(_)), "{body}: {unheard}");
            assert_eq!(unheard.failure(), Failure::NoAnswer, "{body}");
        }
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
        }
    }
}
