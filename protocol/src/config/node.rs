//! A value as a person wrote it, not yet checked.

use super::unit;
use crate::{Bytes, MilliCpu, quantity};
use std::collections::BTreeMap;
use std::fmt;

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

    /// The truth value, if it is one.
    pub fn truth(&self) -> Option<bool> {
        let Self::Bool(truth) = self else { return None };
        Some(*truth)
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
    let (number, unit) = unit::cut(text);
    let suffix = match unit {
        "B" => "",
        "KiB" => "Ki",
        "MiB" => "Mi",
        "GiB" => "Gi",
        "TiB" => "Ti",
        _ => return None,
    };
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    quantity::memory(&format!("{number}{suffix}")).ok()
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
}
