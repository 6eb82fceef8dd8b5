//! The memory policy: how many compute units the memory in use calls for.
//!
//! Source: the reference after v0.12.2, `(total - available + 100 MiB) / target / CU.mem`. The
//! 100 MiB stand for memory that the guest's kernel uses but does not report.

use crate::Sample;
use windlass_protocol::{Bytes, ComputeUnit};

/// Memory that a guest's kernel uses but does not report; the reference's figure.
const KERNEL: Bytes = Bytes::from_mib(100);
/// More memory than an x86_64 machine can address is absurd.
const ABSURD_TOTAL: Bytes = Bytes::from_gib(1 << 26);

/// Memory in use; `None` if a figure is missing or the figures are inconsistent.
pub fn used(sample: &Sample) -> Option<Bytes> {
    let total = sample.total.filter(|total| !total.is_zero() && *total <= ABSURD_TOTAL)?;
    let available = sample.available.filter(|available| *available <= total)?;
    Some(total.saturating_sub(available))
}

/// Compute units, not yet rounded up.
pub fn units(used: Bytes, target: f64, unit: ComputeUnit) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rounding error of a byte is no matter")]
    let (needed, step) = (used.saturating_add(KERNEL).bytes() as f64, unit.mem().bytes() as f64);
    needed / target / step
}
