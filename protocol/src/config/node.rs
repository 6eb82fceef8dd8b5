//! A value as a person wrote it, not yet checked.

use crate::words::sanitized;
use crate::{Bytes, MilliCpu, quantity};
use std::collections::BTreeMap;
use std::fmt;

/// The units of memory, and the suffixes that quantities have for them.
const UNITS: [(&str, &str); 5] =
    [("B", ""), ("KiB", "Ki"), ("MiB", "Mi"), ("GiB", "Gi"), ("TiB", "Ti")];

/// The most characters of an unknown unit that an error quotes.
const LONGEST_UNIT: usize = 20;

/// A value that a person wrote.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// JSON's `null`; TOML has none.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// Several values.
    List(Vec<Node>),
    /// Values by name.
    Table(BTreeMap<String, Node>),
    /// A value that no key allows, as written: a date, a number beyond 64 bits.
    Other(String),
}

// === impl Node ===

impl Node {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        let Self::Text(text) = self else { return None };
        Some(text)
    }

    /// The whole number, if it is one.
    pub fn whole(&self) -> Option<i64> {
        let Self::Whole(number) = self else { return None };
        Some(*number)
    }

    /// The values, if it is a list.
    pub fn list(&self) -> Option<&[Self]> {
        let Self::List(list) = self else { return None };
        Some(list)
    }

    /// The values by name, if it is a table.
    pub fn table(&self) -> Option<&BTreeMap<String, Self>> {
        let Self::Table(table) = self else { return None };
        Some(table)
    }

    /// The number, whole or not, if it is one.
    pub fn number(&self) -> Option<f64> {
        if let Self::Float(number) = self {
            return Some(*number);
        }
        self.whole()?.to_string().parse().ok()
    }

    /// An amount of CPU: `1`, `0.25` or `"250m"`.
    pub fn cpu(&self) -> Option<MilliCpu> {
        match self.text() {
            Some(text) => quantity::cpu(text).ok(),
            None => quantity::cpu(&self.number()?.to_string()).ok(),
        }
    }

    /// An amount of memory: bytes, or `"512MiB"`.
    pub fn memory(&self) -> Option<Bytes> {
        match self.text() {
            Some(text) => memory(text),
            None => u64::try_from(self.whole()?).ok().map(Bytes::from_bytes),
        }
    }
}

/// `512MiB`, `1.5GiB`, `4096B`. Ambiguous units such as `GB` and `G` are invalid.
pub fn memory(text: &str) -> Option<Bytes> {
    let (number, unit) = cut(text);
    let (_, suffix) = UNITS.iter().find(|(name, _)| *name == unit)?;
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    quantity::memory(&format!("{number}{suffix}")).ok()
}

/// The error of this text, if its unit is invalid: it names the unit to write. `MB` and `M` mean ten to
/// the sixth to some people and two to the twentieth to others.
pub(super) fn unit_complaint(text: &str) -> Option<String> {
    let (number, unit) = cut(text);
    number.parse::<f64>().ok()?;
    let meant = match unit.to_ascii_lowercase().as_str() {
        "" => return Some("has no unit; write MiB or GiB, as \"512MiB\"".to_owned()),
        "k" | "kb" | "ki" | "kib" => "KiB",
        "m" | "mb" | "mi" | "mib" => "MiB",
        "g" | "gb" | "gi" | "gib" => "GiB",
        "t" | "tb" | "ti" | "tib" => "TiB",
        _ => "MiB or GiB, as \"512MiB\"",
    };
    let is_one = UNITS.iter().any(|(name, _)| *name == unit);
    (!is_one).then(|| {
        let unit = sanitized(unit, LONGEST_UNIT);
        format!("{unit} is no unit of memory here; write {meant}")
    })
}

/// The number and the unit, both unchecked.
fn cut(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

/// As a person would write it; `a table` and `a list` for those.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_list_or_a_table_or_neither() {
        let list = Node::List(vec![Node::Whole(1), Node::Null]);
        let table = Node::Table(BTreeMap::from([("a".to_owned(), Node::Bool(true))]));
        assert_eq!(list.list(), Some(&[Node::Whole(1), Node::Null][..]));
        assert_eq!(table.table().and_then(|table| table.get("a")), Some(&Node::Bool(true)));
        assert_eq!((table.list(), list.table(), Node::Null.list()), (None, None, None));
    }

    #[test]
    fn memory_has_units_with_one_meaning() {
        for (text, bytes) in [
            ("0B", 0),
            ("100B", 100),
            ("1KiB", 1 << 10),
            ("512MiB", 512 << 20),
            ("1.5GiB", 1536 << 20),
            ("2 TiB", 2 << 40),
        ] {
            assert_eq!(memory(text), Some(Bytes::from_bytes(bytes)), "{text}");
        }
        for text in ["", "512", "512MB", "1G", "1Gi", "MiB", ".MiB", "-1MiB", "1.2.3GiB", "NaNMiB"]
        {
            assert_eq!(memory(text), None, "{text}");
        }
        assert_eq!(memory("99999999999999TiB"), None);
    }

    #[test]
    fn an_invalid_unit_is_named_with_the_valid_one() {
        for (text, said) in [
            ("500MB", "MB is no unit of memory here; write MiB"),
            ("4G", "G is no unit of memory here; write GiB"),
            ("1.5 Gi", "Gi is no unit of memory here; write GiB"),
            ("512mib", "mib is no unit of memory here; write MiB"),
            ("9kb", "kb is no unit of memory here; write KiB"),
            ("2Ti", "Ti is no unit of memory here; write TiB"),
            ("2 sacks", "sacks is no unit of memory here; write MiB or GiB, as \"512MiB\""),
            ("512", "has no unit; write MiB or GiB, as \"512MiB\""),
        ] {
            assert_eq!(unit_complaint(text).as_deref(), Some(said), "{text}");
        }
    }

    #[test]
    fn a_text_with_a_valid_unit_has_no_error_of_the_unit() {
        for text in ["500MiB", "0B", "", "MiB", "-1MiB", "1.2.3GiB", "lots"] {
            assert_eq!(unit_complaint(text), None, "{text}");
        }
    }
}
