//! The load-average policy: how many compute units the load calls for.
//!
//! Source: the reference's formula with its fix #421, `load / target / CU.cpu`. One compute
//! unit is not one vCPU: with a unit of a quarter vCPU, a load of 3.6 at a target of 0.9 calls
//! for 16 units.

use windlass_protocol::ComputeUnit;

/// Loads above this are absurd: more runnable tasks than Linux can have.
const ABSURD_LOAD: f64 = 4_194_304.0;

/// Compute units, not yet rounded; `None` if the load is missing or absurd.
pub fn units(load: Option<f64>, target: f64, unit: ComputeUnit) -> Option<f64> {
    let load = load.filter(|load| (0.0..=ABSURD_LOAD).contains(load))?;
    #[expect(clippy::cast_precision_loss, reason = "milli-CPUs are far below 2^52")]
    let cores = unit.cpu().milli() as f64 / 1000.0;
    Some(load / target / cores).filter(|units| units.is_finite())
}
