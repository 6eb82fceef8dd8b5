//! Quantities, with their unit in the type.
//!
//! A bare `u64` of memory is bytes in one file and MiB in the next. These types have no public field and
//! no `From<u64>`: every construction and every reading names the unit. Arithmetic saturates, and says so
//! in its name.

use serde::{Deserialize, Serialize};
use std::fmt;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// An amount of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

/// An amount of CPU, in thousandths of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MilliCpu(u64);

/// An amount of CPU and of memory.
///
/// `PartialOrd` is absent on purpose: with two axes, "less" is ambiguous. Use [`Resources::covers`],
/// [`Resources::min`] and [`Resources::max`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// CPU axis.
    pub cpu: MilliCpu,
    /// Memory axis.
    pub mem: Bytes,
}

/// The step of vCPU and memory in which sizes change. Both axes are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Resources", into = "Resources")]
pub struct ComputeUnit(Resources);

/// Arithmetic of amounts, whatever their unit.
macro_rules! amounts {
    ($($name:ident),+) => {$(
        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);

            /// Whether it is zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The sum, at most the largest amount.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, at least zero.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// The product, at most the largest amount.
            #[must_use]
            pub const fn saturating_mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }

            /// The smallest multiple of `step` that is not smaller. A `step` of zero changes nothing.
            #[must_use]
            pub const fn round_up(self, step: Self) -> Self {
                if step.0 == 0 {
                    return self;
                }
                // Beyond the last multiple, round down.
                match self.0.div_ceil(step.0).checked_mul(step.0) {
                    Some(up) => Self(up),
                    None => Self(u64::MAX / step.0 * step.0),
                }
            }

            /// The largest multiple of `step` that is not larger. A `step` of zero changes nothing.
            #[must_use]
            pub const fn round_down(self, step: Self) -> Self {
                match self.0.checked_rem(step.0) {
                    Some(rest) => Self(self.0 - rest),
                    None => self,
                }
            }

            /// The number of whole `step`s that fit; zero if `step` is zero.
            pub const fn whole(self, step: Self) -> u64 {
                match self.0.checked_div(step.0) {
                    Some(count) => count,
                    None => 0,
                }
            }
        }
    )+};
}

amounts!(Bytes, MilliCpu);

// === impl Bytes ===

impl Bytes {
    /// This many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// This many KiB, saturating.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(KIB))
    }

    /// This many MiB, saturating.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(MIB))
    }

    /// This many GiB, saturating.
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib.saturating_mul(GIB))
    }

    /// The amount in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The amount in whole MiB, rounded down.
    pub const fn mib(self) -> u64 {
        self.0 / MIB
    }
}

/// In the largest unit that needs at most two decimals: `512MiB`, `1.5GiB`, `100B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        for (unit, name) in [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
            if bytes >= unit {
                let hundredths =
                    (u128::from(bytes) * 100 + u128::from(unit) / 2) / u128::from(unit);
                return decimal(f, hundredths / 100, hundredths % 100, 2, name);
            }
        }
        write!(f, "{bytes}B")
    }
}

// === impl MilliCpu ===

impl MilliCpu {
    /// This many thousandths of a vCPU.
    pub const fn from_milli(milli: u64) -> Self {
        Self(milli)
    }

    /// This many whole vCPUs, saturating.
    pub const fn from_cores(cores: u64) -> Self {
        Self(cores.saturating_mul(1000))
    }

    /// The amount in thousandths of a vCPU.
    pub const fn milli(self) -> u64 {
        self.0
    }

    /// The amount in whole vCPUs, rounded up.
    pub const fn cores_up(self) -> u64 {
        self.0.div_ceil(1000)
    }
}

/// As decimal cores: `2`, `0.25`.
impl fmt::Display for MilliCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal(f, u128::from(self.0 / 1000), u128::from(self.0 % 1000), 3, "")
    }
}

// === impl Resources ===

impl Resources {
    /// Zero on both axes.
    pub const ZERO: Self = Self { cpu: MilliCpu::ZERO, mem: Bytes::ZERO };

    /// From both axes.
    pub const fn new(cpu: MilliCpu, mem: Bytes) -> Self {
        Self { cpu, mem }
    }

    /// Whether this is at least `other` on both axes.
    pub fn covers(self, other: Self) -> bool {
        self.cpu >= other.cpu && self.mem >= other.mem
    }

    /// The smaller on each axis.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { cpu: self.cpu.min(other.cpu), mem: self.mem.min(other.mem) }
    }

    /// The larger on each axis.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), mem: self.mem.max(other.mem) }
    }

    /// The sum on each axis, saturating.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self { cpu: self.cpu.saturating_add(other.cpu), mem: self.mem.saturating_add(other.mem) }
    }

    /// The difference on each axis, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(other.cpu), mem: self.mem.saturating_sub(other.mem) }
    }

    /// Each axis rounded up to a multiple of the same axis of `grain`.
    #[must_use]
    pub const fn round_up(self, grain: Self) -> Self {
        Self { cpu: self.cpu.round_up(grain.cpu), mem: self.mem.round_up(grain.mem) }
    }
}

/// `2 vCPU / 1GiB`.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vCPU / {}", self.cpu, self.mem)
    }
}

// === impl ComputeUnit ===

impl ComputeUnit {
    /// The unit with these amounts; `None` if an amount is zero.
    pub const fn new(cpu: MilliCpu, mem: Bytes) -> Option<Self> {
        if cpu.is_zero() || mem.is_zero() { None } else { Some(Self(Resources { cpu, mem })) }
    }

    /// CPU of one unit.
    pub const fn cpu(self) -> MilliCpu {
        self.0.cpu
    }

    /// Memory of one unit.
    pub const fn mem(self) -> Bytes {
        self.0.mem
    }

    /// This many units, saturating.
    pub const fn times(self, count: u64) -> Resources {
        Resources { cpu: self.0.cpu.saturating_mul(count), mem: self.0.mem.saturating_mul(count) }
    }
}

impl TryFrom<Resources> for ComputeUnit {
    type Error = &'static str;

    fn try_from(unit: Resources) -> Result<Self, Self::Error> {
        Self::new(unit.cpu, unit.mem).ok_or("a compute unit needs both cpu and memory above zero")
    }
}

impl From<ComputeUnit> for Resources {
    fn from(unit: ComputeUnit) -> Self {
        unit.0
    }
}

impl fmt::Display for ComputeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `whole`, then `fraction` of `digits` digits without trailing zeros, then `unit`.
fn decimal(
    f: &mut fmt::Formatter<'_>,
    whole: u128,
    fraction: u128,
    digits: usize,
    unit: &str,
) -> fmt::Result {
    if fraction == 0 {
        return f.pad(&format!("{whole}{unit}"));
    }
    let fraction = format!("{fraction:0digits$}");
    f.pad(&format!("{whole}.{}{unit}", fraction.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_decimal_cores_and_binary_units() {
        for (amount, text) in [(0, "0"), (250, "0.25"), (1000, "1"), (1500, "1.5"), (1, "0.001")] {
            assert_eq!(MilliCpu::from_milli(amount).to_string(), text);
        }
        for (amount, text) in [
            (Bytes::from_bytes(100), "100B"),
            (Bytes::from_kib(1), "1KiB"),
            (Bytes::from_mib(512), "512MiB"),
            (Bytes::from_mib(1536), "1.5GiB"),
            (Bytes::from_bytes(u64::MAX), "17179869184GiB"),
        ] {
            assert_eq!(amount.to_string(), text);
        }
    }

    #[test]
    fn rounding_stays_within_the_range() {
        let step = Bytes::from_mib(2);
        assert_eq!(Bytes::from_mib(3).round_up(step), Bytes::from_mib(4));
        assert_eq!(Bytes::from_mib(4).round_up(step), Bytes::from_mib(4));
        assert_eq!(Bytes::from_mib(3).round_down(step), step);
        assert_eq!(Bytes::from_mib(3).round_up(Bytes::ZERO), Bytes::from_mib(3));
        assert_eq!(
            Bytes::from_bytes(u64::MAX).round_up(step).bytes(),
            u64::MAX / step.bytes() * step.bytes()
        );
    }

    #[test]
    fn a_compute_unit_has_both_axes() {
        assert!(ComputeUnit::new(MilliCpu::ZERO, Bytes::from_gib(1)).is_none());
        assert!(ComputeUnit::new(MilliCpu::from_cores(1), Bytes::ZERO).is_none());
        let unit = ComputeUnit::new(MilliCpu::from_milli(250), Bytes::from_gib(1)).unwrap();
        assert_eq!(unit.times(4).to_string(), "1 vCPU / 4GiB");
    }
}
