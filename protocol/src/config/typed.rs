//! Rust types that values of the kinds are read as.

use super::kind::Kind;
use super::node::Node;
use crate::{Bytes, CpuLimit, MilliCpu, quantity, words};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A type that a value of some kind is read as.
pub trait Typed: Sized {
    /// The value, if it has this kind and the kind allows it.
    fn read(kind: &Kind, node: &Node) -> Option<Self>;
}

// === impl Typed ===

impl Typed for bool {
    fn read(_: &Kind, node: &Node) -> Option<Self> {
        let Node::Bool(truth) = node else { return None };
        Some(*truth)
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

impl Typed for CpuLimit {
    fn read(_: &Kind, node: &Node) -> Option<Self> {
        words::named(node.text()?)
    }
}

impl Typed for MilliCpu {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        node.cpu().filter(|cpu| kind.has_cpu(*cpu))
    }
}

impl Typed for Bytes {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        memory(kind, node).filter(|memory| kind.has_memory(*memory))
    }
}

impl Typed for Duration {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        let Kind::Time { least, most } = kind else {
            return u64::read(kind, node).map(Self::from_secs);
        };
        time(node).filter(|time| (*least..=*most).contains(time))
    }
}

/// Whole numbers as written, before [`super::Reader::seconds`].
macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Typed for $type {
            fn read(kind: &Kind, node: &Node) -> Option<Self> {
                let (number, (least, most)) = (node.whole()?, kind.whole_range()?);
                (least..=most).contains(&number).then(|| number.try_into().ok())?
            }
        }
    )+};
}

whole_numbers!(u64, u16, usize, i32);

impl Typed for f64 {
    fn read(kind: &Kind, node: &Node) -> Option<Self> {
        node.number().filter(|number| kind.has_number(*number))
    }
}

/// An amount of memory in the notation of its kind.
pub(super) fn memory(kind: &Kind, node: &Node) -> Option<Bytes> {
    match (kind, node.text()) {
        (Kind::Quantity { .. }, Some(text)) => quantity::memory(text).ok(),
        _ => node.memory(),
    }
}

/// Seconds as a number, or a text such as `"5s"` or `"250ms"`.
pub(super) fn time(node: &Node) -> Option<Duration> {
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
