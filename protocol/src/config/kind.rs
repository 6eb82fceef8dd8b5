//! Kinds of values: the notation of each, the range of allowed values, and the allowed value nearest to
//! an invalid one.

use super::node::{Node, unit_complaint};
use super::typed;
use crate::{Bytes, MilliCpu, quantity, words};
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

/// The most memory slots that the plugin's wire counts.
pub(crate) const MOST_SLOTS: u64 = u16::MAX as u64;

/// The notation of memory.
pub const MEMORY: &str = "bytes, or a text as \"512MiB\"";

/// The notation of a value and its range, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Truth,
    /// An absolute path.
    Path {
        /// The most bytes; [`usize::MAX`] for no limit.
        longest: usize,
    },
    /// An IP address, without a port.
    Ip,
    /// An IP address and a port to listen on, never a name.
    Address,
    /// `FIRST-LAST`.
    Ports,
    /// vCPUs.
    Cpu {
        /// The fewest.
        least: MilliCpu,
        /// The most.
        most: MilliCpu,
    },
    /// Memory, in multiples of the step unless the step is zero.
    Memory {
        /// The least.
        least: Bytes,
        /// The most.
        most: Bytes,
        /// The step.
        step: Bytes,
    },
    /// Memory as Kubernetes writes it: `1Gi`.
    Quantity {
        /// The least.
        least: Bytes,
        /// The most.
        most: Bytes,
        /// The step.
        step: Bytes,
    },
    /// Memory in whole slots; the wire counts at most 65,535 of them.
    Slots {
        /// The size of a slot; zero in a table, where another key gives it.
        slot: Bytes,
    },
    /// A time.
    Time {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// A whole number.
    Whole {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// A port number to connect to or to listen on.
    Port,
    /// A whole number of the reference, which limits only the least: a number outside the range counts
    /// as the nearer end.
    Clamped {
        /// The least that may be written.
        least: u64,
        /// The least that counts.
        from: u64,
        /// The most that counts.
        to: u64,
    },
    /// A number in a range.
    Number {
        /// The lower end.
        from: Bound<f64>,
        /// The upper end.
        to: Bound<f64>,
    },
    /// A text.
    Text {
        /// Whether it may be empty.
        empty: bool,
    },
    /// A list of texts.
    Texts {
        /// Whether it may be empty.
        empty: bool,
    },
    /// One of a few words.
    Word {
        /// All of them, in the order in which people are told.
        of: &'static [&'static str],
    },
    /// A value that the program reads with its own function.
    Other {
        /// Its notation.
        written: &'static str,
        /// The allowed values.
        allowed: &'static str,
    },
}

// === impl Kind ===

impl Kind {
    /// An absolute path.
    pub const PATH: Self = Self::Path { longest: usize::MAX };
    /// The path of a unix socket; the kernel limits its length.
    pub const SOCKET: Self = Self::Path { longest: 107 };

    /// From 0.05 to `most` vCPUs.
    pub const fn cpu(most: u64) -> Self {
        Self::Cpu { least: MilliCpu::from_milli(50), most: MilliCpu::from_cores(most) }
    }

    /// Memory between these limits, without a step.
    pub const fn memory(least: Bytes, most: Bytes) -> Self {
        Self::Memory { least, most, step: Bytes::ZERO }
    }

    /// The notation.
    pub fn written(&self) -> &'static str {
        match self {
            Self::Truth => "true or false",
            Self::Path { .. } => "a path",
            Self::Ip => "an IP address",
            Self::Address => "an IP address and a port",
            Self::Ports => "a text",
            Self::Cpu { .. } => "vCPUs, as 1, 0.25 or \"250m\"",
            Self::Memory { .. } | Self::Slots { .. } => MEMORY,
            Self::Quantity { .. } => "bytes, or a text as \"512Mi\"",
            Self::Time { .. } => "seconds, or a text as \"250ms\"",
            Self::Whole { .. } | Self::Port | Self::Clamped { .. } => "a whole number",
            Self::Number { .. } => "a number",
            Self::Text { .. } => "a text",
            Self::Texts { .. } => "a list of texts",
            Self::Word { .. } => "a word",
            Self::Other { written, .. } => written,
        }
    }

    /// The allowed values.
    pub fn allowed(&self) -> String {
        match *self {
            Self::Truth => "true or false".to_owned(),
            Self::Path { longest: usize::MAX } => "an absolute path".to_owned(),
            Self::Path { longest } => format!("an absolute path of at most {longest} bytes"),
            Self::Ip => "an IP address, without a port".to_owned(),
            Self::Address => "an IP address and a port; port 0 takes a free one".to_owned(),
            Self::Ports => "FIRST-LAST, from 1 to 65535".to_owned(),
            Self::Cpu { least, most } => format!("{least} to {most} vCPUs"),
            Self::Memory { least, most, step } => between(exactly, least, most, step),
            Self::Quantity { least, most, step } => {
                let range = between(quantity::memory_text, least, most, step);
                format!("an amount of memory from {range}")
            }
            Self::Slots { .. } => format!("1 to {MOST_SLOTS} whole memory slots"),
            Self::Time { least, most } => format!("{} to {}", seconds(least), seconds(most)),
            Self::Whole { least, most: i64::MAX } => format!("a whole number from {least}"),
            Self::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Self::Port => "a port from 1 to 65535".to_owned(),
            Self::Clamped { least, from, to } => {
                let start = if least == 0 { String::new() } else { format!(" from {least}") };
                let few = if least < from {
                    format!("{least} counts as {from}, more than {to} as {to}")
                } else {
                    format!("more than {to} counts as {to}")
                };
                format!("a whole number{start}; {few}")
            }
            Self::Number { from: Bound::Included(from), to: Bound::Included(to) } => {
                format!("a number from {from} to {to}")
            }
            Self::Number { from, to } => {
                let from = match from {
                    Bound::Excluded(from) => format!("above {from}"),
                    Bound::Included(from) => format!("from {from}"),
                    Bound::Unbounded => "any".to_owned(),
                };
                match to {
                    Bound::Excluded(to) => format!("{from}, below {to}"),
                    Bound::Included(to) => format!("{from}, at most {to}"),
                    Bound::Unbounded => from,
                }
            }
            Self::Text { empty: true } => "a text".to_owned(),
            Self::Text { empty: false } => "a text that is not empty".to_owned(),
            Self::Texts { empty: true } => "a list of texts".to_owned(),
            Self::Texts { empty: false } => "a list of one text or more".to_owned(),
            Self::Word { of } => match of {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} or {last}", first.join(", "))
                }
                few => few.concat(),
            },
            Self::Other { allowed, .. } => allowed.to_owned(),
        }
    }

    /// Whether the kind allows this amount of memory.
    pub fn has_memory(&self, memory: Bytes) -> bool {
        self.memory_range().is_some_and(|(least, most, step)| {
            (least..=most).contains(&memory) && memory.round_down(step) == memory
        })
    }

    /// Whether the kind allows this amount of CPU.
    pub fn has_cpu(&self, cpu: MilliCpu) -> bool {
        matches!(self, Self::Cpu { least, most } if (*least..=*most).contains(&cpu))
    }

    /// Whether the kind allows this number.
    pub fn has_number(&self, number: f64) -> bool {
        matches!(self, Self::Number { from, to } if (*from, *to).contains(&number))
    }

    /// The error of an invalid value; `range` describes the range of its field.
    pub(super) fn complaint(&self, node: &Node, range: &str) -> String {
        // The unit of memory comes first: a range does not help a person who wrote MB.
        let text = node.text().filter(|_| self.written() == MEMORY);
        if let Some(complaint) = text.and_then(unit_complaint) {
            return complaint;
        }
        match self.nearest(node) {
            Some((nearest, Some(step))) => format!("is not a multiple of {step}; {nearest} is"),
            Some((nearest, None)) => format!("must be {range}; the nearest is {nearest}"),
            None => match self.meant(node) {
                Some(word) => format!("must be {range}; did you mean {word}?"),
                None => format!("must be {range}"),
            },
        }
    }

    /// The word that a misspelt one probably means.
    fn meant(&self, node: &Node) -> Option<&'static str> {
        let Self::Word { of } = self else { return None };
        words::meant(node.text()?, of.iter().copied())
    }

    /// The nearest allowed value of an amount, and the step if the value only misses a multiple of it.
    fn nearest(&self, node: &Node) -> Option<(String, Option<String>)> {
        if let Self::Cpu { least, most } = *self {
            return Some((node.cpu()?.clamp(least, most).to_string(), None));
        }
        if let Self::Time { least, most } = *self {
            return Some((seconds(typed::time(node)?.clamp(least, most)), None));
        }
        if let Some((least, most)) = self.whole_range() {
            return Some((node.whole()?.clamp(least, most).to_string(), None));
        }
        if let Self::Number { from, to } = *self {
            let number = node.number().filter(|number| number.is_finite())?;
            return Some((nearest_end(number, from, to)?.to_string(), None));
        }
        let (least, most, step) = self.memory_range()?;
        let memory = typed::memory(self, node)?;
        let inside = memory.clamp(least, most);
        let (down, up) = (inside.round_down(step), inside.round_up(step).min(most));
        let is_low = inside.saturating_sub(down) < up.saturating_sub(inside);
        let nearest = if is_low { down } else { up };
        let is_quantity = matches!(self, Self::Quantity { .. });
        let said = if is_quantity { quantity::memory_text } else { exactly };
        Some((said(nearest), (inside == memory).then(|| said(step))))
    }

    /// The range of a whole number, as it may be written.
    pub(super) fn whole_range(&self) -> Option<(i64, i64)> {
        if let Self::Whole { least, most } = *self {
            return Some((least, most));
        }
        if let Self::Clamped { least, .. } = *self {
            return Some((i64::try_from(least).ok()?, i64::MAX));
        }
        matches!(self, Self::Port).then_some((1, 65_535))
    }

    fn memory_range(&self) -> Option<(Bytes, Bytes, Bytes)> {
        if let Self::Memory { least, most, step } | Self::Quantity { least, most, step } = *self {
            return Some((least, most, step));
        }
        let Self::Slots { slot } = *self else { return None };
        (!slot.is_zero()).then(|| (slot, slot.saturating_mul(MOST_SLOTS), slot))
    }
}

/// The end of a range that is nearest to a number beyond it; an end that is not in the range has no nearest number.
fn nearest_end(number: f64, from: Bound<f64>, to: Bound<f64>) -> Option<f64> {
    let is_above = (from, Bound::Unbounded).contains(&number);
    match if is_above { to } else { from } {
        Bound::Included(end) => Some(end),
        Bound::Excluded(_) | Bound::Unbounded => None,
    }
}

fn between(said: fn(Bytes) -> String, least: Bytes, most: Bytes, step: Bytes) -> String {
    let range = format!("{} to {}", said(least), said(most));
    match said(step).strip_prefix('1') {
        _ if step.is_zero() => range,
        Some(unit) => format!("{range}, in whole {unit}"),
        None => format!("{range}, in multiples of {}", said(step)),
    }
}

/// In the largest unit that gives a whole number.
pub(super) fn exactly(memory: Bytes) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let bytes = memory.bytes();
    let unit = units.into_iter().find(|(power, _)| bytes > 0 && bytes.trailing_zeros() >= *power);
    let (power, name) = unit.unwrap_or((0, "B"));
    format!("{}{name}", bytes >> power)
}

/// `2s`, `250ms`.
pub(super) fn seconds(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}
