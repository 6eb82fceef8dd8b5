//! How much an endpoint had, exactly: fractions of a second are kept until they are whole.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use windlass_protocol::MilliCpu;

/// Thousandths of a vCPU times milliseconds in one CPU second.
const CPU_SECOND: u64 = 1_000_000;

/// Milliseconds in one second.
const SECOND: u64 = 1_000;

/// What was had and is in no event yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Thousandths of a vCPU times milliseconds.
    cpu: u64,
    /// Milliseconds in which the VM was there.
    active: u64,
}

// === impl Usage ===

impl Usage {
    /// So much CPU was had for so long.
    pub(crate) fn add(&mut self, cpu: MilliCpu, span: Duration) {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.cpu = self.cpu.saturating_add(cpu.milli().saturating_mul(millis));
        self.active = self.active.saturating_add(millis);
    }

    /// Whole CPU seconds.
    pub(crate) const fn cpu_seconds(self) -> u64 {
        self.cpu / CPU_SECOND
    }

    /// Whole active seconds.
    pub(crate) const fn active_seconds(self) -> u64 {
        self.active / SECOND
    }

    /// Leaves the fractions.
    pub(crate) fn take_whole(&mut self) {
        self.cpu %= CPU_SECOND;
        self.active %= SECOND;
    }

    /// Whether nothing whole is in it.
    pub(crate) const fn is_fraction(self) -> bool {
        self.cpu_seconds() == 0 && self.active_seconds() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_wait_until_they_are_whole() {
        let mut usage = Usage::default();
        let mut billed = (0, 0);
        for _ in 0..10 {
            usage.add(MilliCpu::from_milli(250), Duration::from_millis(1_300));
            billed.0 += usage.cpu_seconds();
            billed.1 += usage.active_seconds();
            usage.take_whole();
        }
        // 3.25 CPU seconds, 13 active seconds.
        assert_eq!((billed, usage), ((3, 13), Usage { cpu: 250_000, active: 0 }));
    }
}
