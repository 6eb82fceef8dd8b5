//! v1.1, number 2: as v2.0, with whole CPUs.
//!
//! What a VM has is rounded up, what it may have is rounded down.

use super::parts::{Answered, Cpu, MOST_CPU, same_wire};
use super::{OverRange, v2_0};
use crate::MilliCpu;

/// What an agent says.
#[derive(Default)]
pub(super) struct Request(pub(super) v2_0::Request);

/// What the plugin says.
#[derive(Default)]
pub(super) struct Response(pub(super) v2_0::Response);

const CORE: MilliCpu = MilliCpu::from_cores(1);

same_wire!(Request);
same_wire!(Response);

// === impl Request ===

impl From<Request> for v2_0::Request {
    fn from(older: Request) -> Self {
        older.0
    }
}

impl TryFrom<v2_0::Request> for Request {
    type Error = OverRange;

    fn try_from(mut newer: v2_0::Request) -> Result<Self, OverRange> {
        let cpu = newer.resources.cpu.0.round_up(CORE);
        if cpu > MOST_CPU {
            return Err(OverRange::Cpu { field: "resources", value: cpu });
        }
        newer.resources.cpu = Cpu(cpu);
        Ok(Self(newer))
    }
}

// === impl Response ===

impl From<Response> for v2_0::Response {
    fn from(older: Response) -> Self {
        older.0
    }
}

/// The unit is told as the smallest multiple of it that has whole CPUs.
impl From<v2_0::Response> for Response {
    fn from(mut newer: v2_0::Response) -> Self {
        let permit = &mut newer.permit.0.cpu.0;
        *permit = permit.round_down(CORE);
        newer.unit = whole(newer.unit);
        Self(newer)
    }
}

fn whole(Answered(mut unit): Answered) -> Answered {
    let cpu = unit.cpu.0;
    let fits =
        |times: &u16| cpu.saturating_mul(u64::from(*times)).milli().is_multiple_of(CORE.milli());
    // At the latest a thousand times as much is whole.
    let times = (1..=1000).find(fits).unwrap_or(1000);
    let most = MOST_CPU.round_down(CORE);
    unit.cpu = Cpu(cpu.saturating_mul(u64::from(times)).min(most));
    unit.slots = unit.slots.saturating_mul(times);
    Answered(unit)
}

#[cfg(test)]
mod tests {
    use super::super::parts::Slotted;
    use super::*;

    #[test]
    fn what_no_longer_fits_once_it_is_rounded_up_is_refused() {
        let refused = |milli| {
            let resources = Slotted { cpu: Cpu(MilliCpu::from_milli(milli)), slots: 1 };
            Request::try_from(v2_0::Request { resources, ..v2_0::Request::default() }).err()
        };
        assert_eq!(refused(4_294_967_000), None);
        let value = MilliCpu::from_milli(4_294_968_000);
        assert_eq!(refused(4_294_967_001), Some(OverRange::Cpu { field: "resources", value }));
    }
}
