//! What sizes and targets may be, wherever they are written.

use crate::vm_file::FieldError;
use crate::{Bounds, Bytes, LoadWindow, MilliCpu, Mode, Policy, Resources, ScaleDown};
use std::fmt;
use std::time::Duration;

/// The least CPU that a VM may be bounded by.
const LEAST_CPU: MilliCpu = MilliCpu::from_milli(50);
/// The most.
const MOST_CPU: MilliCpu = MilliCpu::from_cores(512);
/// The most slots that the plugin's wire counts.
const MOST_SLOTS: u64 = u16::MAX as u64;

/// What a time for which a VM keeps what it does not need may be.
pub(crate) const SCALE_DOWN: &str = "0s to 1h, as \"90s\", \"5m\" or \"1h\"";

/// Whether a bound is one that a VM can have.
pub fn cpu(cpu: MilliCpu) -> bool {
    (LEAST_CPU..=MOST_CPU).contains(&cpu)
}

/// Whether memory is a whole number of slots that the wire can count.
pub fn memory(memory: Bytes, slot: Bytes) -> bool {
    let slots = memory.whole(slot);
    (1..=MOST_SLOTS).contains(&slots) && slot.saturating_mul(slots) == memory
}

/// Whether slots may have this size.
pub fn slot(slot: Bytes) -> bool {
    let mib = Bytes::from_mib(1);
    slot >= mib && slot <= Bytes::from_gib(64) && slot.round_down(mib) == slot
}

/// Whether load per vCPU may be aimed at.
pub(crate) fn load_target(target: f64) -> bool {
    target > 0.0 && target < 2.0
}

/// Whether a use of memory may be aimed at.
pub(crate) fn memory_target(target: f64) -> bool {
    target > 0.0 && target <= 1.0
}

/// The mode of this name.
pub(crate) fn mode(word: &str) -> Option<Mode> {
    named(word, &[Mode::Act, Mode::Observe])
}

/// The policy of this name.
pub(crate) fn policy(word: &str) -> Option<Policy> {
    named(word, &[Policy::LoadAverage])
}

/// The window of this length.
pub(crate) fn load_window(word: &str) -> Option<LoadWindow> {
    named(word, &[LoadWindow::FiveSeconds, LoadWindow::FifteenSeconds, LoadWindow::OneMinute])
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

fn named<T: Copy + fmt::Display>(word: &str, all: &[T]) -> Option<T> {
    all.iter().copied().find(|one| one.to_string() == word)
}

/// Bounds whose maximum covers their minimum; the names are those of the maximum's fields.
///
/// # Errors
/// On each axis, if it does not.
pub fn bounds(
    min: Resources,
    max: Resources,
    [cpu, mem]: [&str; 2],
) -> Result<Bounds, Vec<FieldError>> {
    let mut errors = Vec::new();
    if max.cpu < min.cpu {
        errors.push(FieldError::new(cpu, max.cpu, format!("is below the minimum of {}", min.cpu)));
    }
    if max.mem < min.mem {
        errors.push(FieldError::new(mem, max.mem, format!("is below the minimum of {}", min.mem)));
    }
    if errors.is_empty() { Ok(Bounds { min, max }) } else { Err(errors) }
}
