//! What sizes, targets and the words of a VM may be, wherever they are written.

use crate::config::{Kind, Problem};
use crate::{Bounds, Bytes, Resources, ScaleDown};
use std::ops::Bound;
use std::time::Duration;

/// A bound of a VM's vCPUs.
pub const CPU: Kind = Kind::cpu(512);
/// The size of a memory slot.
pub const SLOT: Kind =
    Kind::Memory { least: Bytes::from_mib(1), most: Bytes::from_gib(64), step: Bytes::from_mib(1) };
/// Load per vCPU that may be aimed at.
pub const LOAD_TARGET: Kind = Kind::Number { from: Bound::Excluded(0.0), to: Bound::Excluded(2.0) };
/// A use of memory that may be aimed at, or any other share that is not nothing.
pub const SHARE: Kind = Kind::Number { from: Bound::Excluded(0.0), to: Bound::Included(1.0) };
/// Who goes first when room is short.
pub const PRIORITY: Kind = Kind::Whole { least: i32::MIN as i64, most: i32::MAX as i64 };
/// Whether Windlass acts.
pub(crate) const MODE: Kind = Kind::Other { written: WORD, allowed: "act or observe" };
/// How a goal is computed.
pub(crate) const POLICY: Kind = Kind::Other { written: WORD, allowed: "load-average" };
/// Over which time load is averaged.
pub(crate) const LOAD_WINDOW: Kind = Kind::Other { written: WORD, allowed: "5s, 15s or 1m" };
/// How long a VM may keep what it does not need.
pub(crate) const SCALE_DOWN: Kind = Kind::Other {
    written: "seconds, or a text as \"5m\"",
    allowed: "0s to 1h, as \"90s\", \"5m\" or \"1h\"",
};

const WORD: &str = "a word";

/// Memory in whole slots of this size, as many as the wire can count.
pub const fn slots(slot: Bytes) -> Kind {
    Kind::Slots { slot }
}

/// How long a VM may keep what it does not need: `0s`, `90s`, `5m` or `1h`.
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

/// Bounds whose maximum covers their minimum; the names are those of the maximum's fields.
///
/// # Errors
/// On each axis, if it does not.
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
