//! The allowed sizes, targets and words of a VM, for every form in which they are written.

use crate::config::{Kind, Problem};
use crate::{Bounds, Bytes, Resources, ScaleDown};
use std::ops::Bound;
use std::time::Duration;

/// A bound of a VM's vCPUs.
pub const CPU: Kind = Kind::cpu(512);
/// The size of a memory slot.
pub const SLOT: Kind =
    Kind::Memory { least: Bytes::from_mib(1), most: Bytes::from_gib(64), step: Bytes::from_mib(1) };
/// A target of load per vCPU.
pub const LOAD_TARGET: Kind = Kind::Number { from: Bound::Excluded(0.0), to: Bound::Excluded(2.0) };
/// A target of memory use, or any other fraction above zero.
pub const SHARE: Kind = Kind::Number { from: Bound::Excluded(0.0), to: Bound::Included(1.0) };
/// The order of VMs when room is short.
pub const PRIORITY: Kind = Kind::Whole { least: i32::MIN as i64, most: i32::MAX as i64 };
/// The limit of a VM's CPU.
pub const CPU_LIMIT: Kind = Kind::Word { of: &["cgroup", "trust", "none"] };
pub(crate) const MODE: Kind = Kind::Word { of: &["act", "observe"] };
pub(crate) const POLICY: Kind = Kind::Word { of: &["load-average"] };
// No word: of amounts, the one that is spelt alike is not the one that is meant.
pub(crate) const LOAD_WINDOW: Kind = Kind::Other { written: "a word", allowed: "5s, 15s or 1m" };
pub(crate) const SCALE_DOWN: Kind = Kind::Other {
    written: "seconds, or a text as \"5m\"",
    allowed: "0s to 1h, as \"90s\", \"5m\" or \"1h\"",
};

/// Memory in whole slots of this size, as many as fit on the wire.
pub const fn slots(slot: Bytes) -> Kind {
    Kind::Slots { slot }
}

/// Reads a scale-down time: `0s`, `90s`, `5m` or `1h`.
pub(crate) fn scale_down(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let seconds = match &text[end..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    scale_down_seconds(text[..end].parse::<u64>().ok()?.checked_mul(seconds)?)
}

/// The same, in seconds.
pub(crate) fn scale_down_seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= ScaleDown::LONGEST)
}

/// Checks that the maximum covers the minimum; `[cpu, mem]` are the names of the maximum's fields.
///
/// # Errors
/// One problem for each axis on which it does not.
pub fn bounds(
    min: Resources,
    max: Resources,
    [cpu, mem]: [&str; 2],
) -> Result<Bounds, Vec<Problem>> {
    let mut problems = Vec::new();
    if max.cpu < min.cpu {
        problems.push(Problem::new(cpu, max.cpu, format!("is below the minimum of {}", min.cpu)));
    }
    if max.mem < min.mem {
        problems.push(Problem::new(mem, max.mem, format!("is below the minimum of {}", min.mem)));
    }
    if problems.is_empty() { Ok(Bounds { min, max }) } else { Err(problems) }
}
