//! A table as it was written, before anything is checked.

pub(super) mod unit;

use crate::quantity;
use crate::{Bytes, MilliCpu};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The table of a VM file. Any key and any kind of value: what is wrong with them is said by
/// [`super::VmFile::from_text`], for all of them together.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(transparent)]
pub struct VmFileText(pub BTreeMap<String, Node>);

/// A value that a person wrote.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nothing, which JSON can say and TOML cannot.
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
        match self {
            Self::Whole(number) => number.to_string().parse().ok(),
            Self::Float(number) => Some(*number),
            Self::Null | Self::Bool(_) | Self::Text(_) | Self::List(_) | Self::Table(_) => None,
        }
    }

    /// An amount of CPU: `1`, `0.25` or `"250m"`.
    pub fn cpu(&self) -> Option<MilliCpu> {
        match self {
            Self::Whole(cores) => quantity::cpu(&cores.to_string()).ok(),
            Self::Float(cores) => quantity::cpu(&cores.to_string()).ok(),
            Self::Text(text) => quantity::cpu(text).ok(),
            Self::Null | Self::Bool(_) | Self::List(_) | Self::Table(_) => None,
        }
    }

    /// An amount of memory: bytes, or `"512MiB"`.
    pub fn memory(&self) -> Option<Bytes> {
        match self {
            Self::Whole(bytes) => u64::try_from(*bytes).ok().map(Bytes::from_bytes),
            Self::Text(text) => memory(text),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::List(_) | Self::Table(_) => None,
        }
    }
}

/// `512MiB`, `1.5GiB`, `4096B`. Only units whose meaning is the same to everybody: `GB` and
/// `G` are not among them.
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

/// As a person would write it; tables and lists by kind.
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
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Node, E> {
        Ok(Node::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Whole(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        // What does not fit keeps its digits, and is refused where a number is expected.
        Ok(i64::try_from(number).map_or_else(|_| Node::Text(number.to_string()), Node::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Node, A::Error> {
        let mut nodes = BTreeMap::new();
        while let Some((key, node)) = table.next_entry()? {
            nodes.insert(key, node);
        }
        Ok(Node::Table(nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, UnitDeserializer};

    #[test]
    fn a_value_is_a_list_or_a_table_or_neither() {
        let list = Node::List(vec![Node::Whole(1), Node::Null]);
        let table = Node::Table(BTreeMap::from([("a".to_owned(), Node::Bool(true))]));
        assert_eq!(list.list(), Some(&[Node::Whole(1), Node::Null][..]));
        assert_eq!(table.table().and_then(|table| table.get("a")), Some(&Node::Bool(true)));
        assert_eq!((table.list(), list.table(), Node::Null.list()), (None, None, None));
        let nothing = UnitDeserializer::<Error>::new();
        let error = Node::deserialize(nothing).unwrap_err().to_string();
        assert!(error.ends_with("expected a value"), "{error}");
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
