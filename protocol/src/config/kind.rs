//! Kinds of values: how each is written, which are allowed, how it is read, and which allowed value
//! is the nearest to one that is not.

use super::node::Node;
use super::unit;
use crate::{Bytes, MilliCpu, quantity};
use std::net::{IpAddr, SocketAddr};
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most memory slots that the plugin's wire counts.
const MOST_SLOTS: u64 = u16::MAX as u64;

/// How memory is written.
pub const MEMORY: &str = "bytes, or a text as \"512MiB\"";

/// How a value is written, and which are allowed. Ends of ranges are allowed, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Truth,
    /// An absolute path of at most so many bytes.
    Path {
        /// How many; [`usize::MAX`] for any number.
        longest: usize,
    },
    /// An IP address, without a port.
    Ip,
    /// An IP address and a port to listen at. Names are not looked up.
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
    /// Memory, in whole steps if that is not zero.
    Memory {
        /// The least.
        least: Bytes,
        /// The most.
        most: Bytes,
        /// The step.
        step: Bytes,
    },
    /// The same, as Kubernetes writes memory: `1Gi`.
    Quantity {
        /// The least.
        least: Bytes,
        /// The most.
        most: Bytes,
        /// The step.
        step: Bytes,
    },
    /// Memory in whole slots, of which the wire counts at most 65,535.
    Slots {
        /// The size of a slot; zero in a table, since another key says it.
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
    /// A port to connect to or to listen at, as a number.
    Port,
    /// A whole number of the reference's, which knows no limit but the least: what is beyond the range
    /// counts as its end.
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
    /// What the program reads with a function of its own.
    Other {
        /// How it is written.
        written: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// A type that kinds of values are read as.
pub trait Typed: Sized {
    /// The value, if this is one of that kind.
    fn read(kind: &Kind, node: &Node) -> Option<Self>;
}

// === impl Kind ===

impl Kind {
    /// An absolute path.
    pub const PATH: Self = Self::Path { longest: usize::MAX };
    /// The path of a unix socket, which the kernel limits.
    pub const SOCKET: Self = Self::Path { longest: 107 };

    /// From 0.05 to so many vCPUs.
    pub const fn cpu(most: u64) -> Self {
        Self::Cpu { least: MilliCpu::from_milli(50), most: MilliCpu::from_cores(most) }
    }

    /// Memory between these, in bytes.
    pub const fn memory(least: Bytes, most: Bytes) -> Self {
        Self::Memory { least, most, step: Bytes::ZERO }
    }

    /// How it is written.
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
            Self::Other { written, .. } => written,
        }
    }

    /// What is allowed.
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
            Self::Other { allowed, .. } => allowed.to_owned(),
        }
    }

    /// Whether this amount of memory is allowed.
    pub fn has_memory(&self, memory: Bytes) -> bool {
        self.memory_range().is_some_and(|(least, most, step)| {
            (least..=most).contains(&memory) && memory.round_down(step) == memory
        })
    }

    /// Whether this amount of CPU is allowed.
    pub fn has_cpu(&self, cpu: MilliCpu) -> bool {
        matches!(self, Self::Cpu { least, most } if (*least..=*most).contains(&cpu))
    }

    /// Whether this number is allowed.
    pub fn has_number(&self, number: f64) -> bool {
        matches!(self, Self::Number { from, to } if (*from, *to).contains(&number))
    }

    /// What is wrong with a value that is not allowed; `range` is what the field says of its range.
    pub(super) fn complaint(&self, node: &Node, range: &str) -> String {
        // Of memory the unit is named first: a range says nothing to a person who took MB for one.
        let text = node.text().filter(|_| self.written() == MEMORY);
        if let Some(complaint) = text.and_then(unit::complaint) {
            return complaint;
        }
        match self.nearest(node) {
            Some((nearest, Some(step))) => format!("is not a multiple of {step}; {nearest} is"),
            Some((nearest, None)) => format!("must be {range}; the nearest is {nearest}"),
            None => format!("must be {range}"),
        }
    }

    /// The nearest value that is allowed, where this is an amount, and the step, where that is all
    /// that is wrong.
    fn nearest(&self, node: &Node) -> Option<(String, Option<String>)> {
        match *self {
            Self::Cpu { least, most } => Some((node.cpu()?.clamp(least, most).to_string(), None)),
            Self::Memory { .. } | Self::Slots { .. } | Self::Quantity { .. } => {
                let (least, most, step) = self.memory_range()?;
                let memory = read_memory(self, node)?;
                let inside = memory.clamp(least, most);
                let (down, up) = (inside.round_down(step), inside.round_up(step).min(most));
                let is_low = inside.saturating_sub(down) < up.saturating_sub(inside);
                let nearest = if is_low { down } else { up };
                let is_quantity = matches!(self, Self::Quantity { .. });
                let said = if is_quantity { quantity::memory_text } else { exactly };
                Some((said(nearest), (inside == memory).then(|| said(step))))
            }
            Self::Time { least, most } => {
                Some((seconds(read_time(node)?.clamp(least, most)), None))
            }
            Self::Whole { least, most } => {
                Some((node.whole()?.clamp(least, most).to_string(), None))
            }
            Self::Port => Some((node.whole()?.clamp(1, 65_535).to_string(), None)),
            Self::Clamped { least, .. } => node.whole().map(|_| (least.to_string(), None)),
            Self::Truth
            | Self::Path { .. }
            | Self::Ip
            | Self::Address
            | Self::Ports
            | Self::Number { .. }
            | Self::Text { .. }
            | Self::Texts { .. }
            | Self::Other { .. } => None,
        }
    }

    fn memory_range(&self) -> Option<(Bytes, Bytes, Bytes)> {
        if let Self::Memory { least, most, step } | Self::Quantity { least, most, step } = *self {
            return Some((least, most, step));
        }
        let Self::Slots { slot } = *self else { return None };
        (!slot.is_zero()).then(|| (slot, slot.saturating_mul(MOST_SLOTS), slot))
    }
}

// === impl Typed ===

impl Typed for bool {
    fn read(_: &Kind, node: &Node) -> Option<Self> {
        node.truth()
    }
}

impl Typed for PathBuf {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let (Kind::Path { longest }, text) = (kind, node.text()?) else { return None };
        let good = Path::new(text).is_absolute() && text.len() <= *longest && !text.contains('\0');
        good.then(|| Self::from(text))
    }
}

impl Typed for IpAddr {
    fn read(_: &Kind, node: &Node) -> Option<Self> {
        node.text()?.parse().ok()
    }
}

impl Typed for SocketAddr {
    fn read(_: &Kind, node: &Node) -> Option<Self> {
        node.text()?.parse().ok()
    }
}

impl Typed for RangeInclusive<u16> {
    fn read(_: &Kind, node: &Node) -> Option<Self> {
        let (first, last) = node.text()?.split_once('-')?;
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first > 0 && first <= last).then_some(first..=last)
    }
}

impl Typed for String {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let Kind::Text { empty } = kind else { return None };
        node.text().filter(|text| *empty || !text.is_empty()).map(str::to_owned)
    }
}

impl Typed for Vec<String> {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let (Kind::Texts { empty }, list) = (kind, node.list()?) else { return None };
        let texts = list.iter().map(|node| node.text().map(str::to_owned));
        texts.collect::<Option<Self>>().filter(|texts| *empty || !texts.is_empty())
    }
}

impl Typed for MilliCpu {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        node.cpu().filter(|cpu| kind.has_cpu(*cpu))
    }
}

impl Typed for Bytes {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        read_memory(kind, node).filter(|memory| kind.has_memory(*memory))
    }
}

impl Typed for Duration {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let Kind::Time { least, most } = kind else {
            return u64::read(kind, node).map(Self::from_secs);
        };
        read_time(node).filter(|time| (*least..=*most).contains(time))
    }
}

/// As it is written, also where it counts as something else ([`super::Reader::clamped`]).
impl Typed for u64 {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let number = node.whole()?;
        let written = Self::try_from(number).ok()?;
        let is_allowed = matches!(kind, Kind::Whole { least, most } if (*least..=*most).contains(&number))
            || matches!(kind, Kind::Port if (1..=65_535).contains(&number))
            || matches!(kind, Kind::Clamped { least, .. } if written >= *least);
        is_allowed.then_some(written)
    }
}

impl Typed for u16 {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        u64::read(kind, node)?.try_into().ok()
    }
}

impl Typed for usize {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        u64::read(kind, node)?.try_into().ok()
    }
}

impl Typed for i32 {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let Kind::Whole { least, most } = kind else { return None };
        node.whole().filter(|number| (*least..=*most).contains(number))?.try_into().ok()
    }
}

impl Typed for f64 {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        node.number().filter(|number| kind.has_number(*number))
    }
}

fn read_memory(kind: &Kind, node: &Node) -> Option<Bytes> {
    match (kind, node.text()) {
        (Kind::Quantity { .. }, Some(text)) => quantity::memory(text).ok(),
        _ => node.memory(),
    }
}

/// Seconds as a number, or a text as `"5s"` or `"250ms"`.
fn read_time(node: &Node) -> Option<Duration> {
    let (number, unit) = match node.text() {
        Some(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let unit = match &text[end..] {
                "s" => 1.0,
                "ms" => 1e-3,
                _ => return None,
            };
            (text[..end].parse::<f64>().ok()?, unit)
        }
        None => (node.number()?, 1.0),
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

fn between(said: fn(Bytes) -> String, least: Bytes, most: Bytes, step: Bytes) -> String {
    let range = format!("{} to {}", said(least), said(most));
    match said(step).strip_prefix('1') {
        _ if step.is_zero() => range,
        Some(unit) => format!("{range}, in whole {unit}"),
        None => format!("{range}, in multiples of {}", said(step)),
    }
}

/// In the largest unit of which it is a whole number, as it can be written.
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
