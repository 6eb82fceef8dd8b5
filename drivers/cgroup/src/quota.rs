//! A quota as the kernel keeps it: so many µs of CPU in each period of so many µs.
//!
//! It is exact, so that what was found can be put back. As an amount of CPU it is rounded up: the books
//! must cover what the VM may use.

use serde::{Deserialize, Serialize};
use std::fmt;
use windlass_protocol::MilliCpu;

/// The period of every limit that is set, in µs: the kernel's own default.
pub const PERIOD_US: u64 = 100_000;

/// How much CPU a cgroup may use in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// µs of CPU in each period; `None`: no limit.
    pub quota: Option<u64>,
    /// µs from one refill to the next; above zero.
    pub period: u64,
}

/// One of the two files of cgroup v1, and what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Quota(Option<u64>),
    Period(u64),
}

// === impl Quota ===

impl Quota {
    /// The quota of a limit, in periods of [`PERIOD_US`].
    pub fn of(limit: MilliCpu) -> Self {
        Self { quota: Some(limit.milli().saturating_mul(PERIOD_US / 1000)), period: PERIOD_US }
    }

    /// Whether it limits nothing.
    pub fn is_none(self) -> bool {
        self.quota.is_none()
    }

    /// The amount of CPU, rounded up to a thousandth; `None`: no limit.
    pub fn cpu(self) -> Option<MilliCpu> {
        let milli = (u128::from(self.quota?) * 1000).div_ceil(u128::from(self.period.max(1)));
        Some(MilliCpu::from_milli(u64::try_from(milli).unwrap_or(u64::MAX)))
    }

    /// Whether it allows more than another; no limit allows the most.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        match (self.quota, other.quota) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(quota), Some(others)) => {
                let scaled = |quota, period| u128::from(quota) * u128::from(period);
                scaled(quota, other.period) > scaled(others, self.period)
            }
        }
    }

    /// Reads `cpu.max` of cgroup v2: `max 100000`, `25000 100000`.
    pub(crate) fn parse_v2(text: &str) -> Option<Self> {
        let (quota, period) = text.trim_end().split_once(' ')?;
        let quota = if quota == "max" { None } else { Some(quota.parse().ok()?) };
        Some(Self { quota, period: period_of(period)? })
    }

    /// Reads `cpu.cfs_quota_us` and `cpu.cfs_period_us` of cgroup v1. A negative quota is no limit.
    pub(crate) fn parse_v1(quota: &str, period: &str) -> Option<Self> {
        let quota: i64 = quota.trim_end().parse().ok()?;
        Some(Self { quota: u64::try_from(quota).ok(), period: period_of(period.trim_end())? })
    }

    /// The text for `cpu.max`.
    pub(crate) fn text_v2(self) -> String {
        match self.quota {
            Some(quota) => format!("{quota} {}", self.period),
            None => format!("max {}", self.period),
        }
    }

    /// What to write on cgroup v1, in an order in which what stands in between allows no more than the
    /// larger of `self` and `to`.
    pub(crate) fn steps_to(self, to: Self) -> Vec<Step> {
        let quota = (self.quota != to.quota).then_some(Step::Quota(to.quota));
        let period = (self.period != to.period).then_some(Step::Period(to.period));
        // A longer period makes a quota smaller, a shorter one makes it larger. Without a quota,
        // the period means nothing.
        let period_first = !to.is_none() && (self.is_none() || to.period > self.period);
        let steps = if period_first { [period, quota] } else { [quota, period] };
        steps.into_iter().flatten().collect()
    }

    /// What `systemctl` takes for `CPUQuota=`, and the quota that systemd makes of it. systemd keeps
    /// hundredths of a percent; a smaller part is rounded up.
    pub(crate) fn for_systemd(self) -> (String, Self) {
        let Some(quota) = self.quota else { return (String::new(), self) };
        let period = u128::from(self.period.max(1));
        let hundredths = (u128::from(quota) * 10_000).div_ceil(period);
        let text = match (hundredths / 100, hundredths % 100) {
            (whole, 0) => format!("{whole}%"),
            (whole, part) if part % 10 == 0 => format!("{whole}.{}%", part / 10),
            (whole, part) => format!("{whole}.{part:02}%"),
        };
        let made = u64::try_from(hundredths * period / 10_000).unwrap_or(u64::MAX);
        (text, Self { quota: Some(made), ..self })
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quota {
            Some(quota) => write!(f, "{quota} of {} µs", self.period),
            None => f.write_str("no limit"),
        }
    }
}

fn period_of(text: &str) -> Option<u64> {
    text.parse().ok().filter(|period| *period > 0)
}

#[cfg(test)]
mod tests;
