//! One key of a file, and the table of all of them.

use super::kind::{Kind, exactly, seconds};
use super::node::Node;
use super::typed::Typed;
use crate::{Bytes, MilliCpu, quantity};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// One key of a file, with all its facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// The name with its table: `max.memory`. In a JSON file `max_batch_size` is `maxBatchSize`.
    pub name: &'static str,
    /// Notation and range.
    pub kind: Kind,
    /// The default. A key without this and `otherwise` is required.
    default: Option<Value>,
    /// The default in words, or words that add to it.
    otherwise: &'static str,
    /// Words that narrow the range of the kind, with the comma: `, other than vms_dir`.
    note: &'static str,
    /// The purpose.
    meaning: &'static str,
    /// The name that the key had in an earlier release, and the values that stand for the earlier ones.
    former: Option<(&'static str, &'static str)>,
}

/// A default, as a person would write it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `false`.
    Truth(bool),
    /// `10310-10399`.
    Text(&'static str),
    /// `4`.
    Whole(i64),
    /// `0.9`.
    Number(f64),
    /// `0.25`.
    Cpu(MilliCpu),
    /// `1GiB`.
    Memory(Bytes),
    /// `1Gi`.
    Quantity(Bytes),
    /// `2s`.
    Time(Duration),
    /// Seconds: `2`.
    Seconds(Duration),
    /// First and last port: `10310-10399`.
    Ports(u16, u16),
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// TOML, with our names of keys: `max_batch_size`.
    Toml,
    /// JSON, with the reference's names of keys: `maxBatchSize`. As in Go, their case does not matter.
    Json,
}

/// The keys of one file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The format of the file.
    pub form: Form,
    parts: &'static [&'static [Field]],
}

/// One key for people: a row of a table in docs/.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The name.
    pub name: String,
    /// The notation; `JSON` for every key of a JSON file.
    pub kind: String,
    /// The default.
    pub default: String,
    /// The allowed values; errors quote them.
    pub range: String,
    /// The purpose.
    pub meaning: String,
}

/// A required key.
pub const fn key(name: &'static str, kind: Kind, meaning: &'static str) -> Field {
    Field { name, kind, default: None, otherwise: "", note: "", meaning, former: None }
}

// === impl Field ===

impl Field {
    /// The key with a default.
    pub const fn or(self, default: Value) -> Self {
        Self { default: Some(default), ..self }
    }

    /// The key with its default in words, or with words that add to the default.
    pub const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// The key with words that narrow its range: `, other than vms_dir`.
    pub const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// The same key with another purpose, for another file.
    pub const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// The key in place of an earlier one, which is an error that says `instead`.
    pub const fn replaces(self, name: &'static str, instead: &'static str) -> Self {
        Self { former: Some((name, instead)), ..self }
    }

    /// The `--help` text of the option that overrides this key.
    pub fn help(&self) -> String {
        let (meaning, range) = (self.meaning.trim_end_matches('.'), self.range(Form::Toml));
        format!("{meaning}: {range}. Wins over the file")
    }

    /// Reads the value of that option.
    ///
    /// # Errors
    /// The allowed values.
    pub fn parse<T: Typed>(&self, text: &str) -> Result<T, String> {
        let node = Node::Text(text.to_owned());
        let complaint = || self.kind.complaint(&node, &self.range(Form::Toml));
        T::read(&self.kind, &node).ok_or_else(complaint)
    }

    pub(super) fn default<T>(&self, read: impl FnOnce(&Node) -> Option<T>) -> T {
        let value = self.default.and_then(|value| read(&value.node()));
        value.expect("a field that is read with its default has one that it takes")
    }

    /// The text for a person who wrote this name, if the key had it in an earlier release.
    pub(super) fn instead_of(&self, name: &str) -> Option<&'static str> {
        self.former.filter(|(former, _)| *former == name).map(|(_, instead)| instead)
    }

    pub(super) fn range(&self, form: Form) -> String {
        // Notes name other keys.
        spelled(&format!("{}{}", self.kind.allowed(), self.note), form).into_owned()
    }

    fn row(&self, form: Form) -> Row {
        let default = match self.default.map(|value| value.to_string()) {
            Some(value) if self.otherwise.is_empty() => value,
            Some(value) => format!("{value}; {}", self.otherwise),
            None if self.otherwise.is_empty() => "required".to_owned(),
            None => self.otherwise.to_owned(),
        };
        Row {
            name: spelled(self.name, form).into_owned(),
            kind: match form {
                Form::Toml => self.kind.written(),
                Form::Json => "JSON",
            }
            .to_owned(),
            default,
            range: self.range(form),
            meaning: self.meaning.to_owned(),
        }
    }
}

// === impl Table ===

impl Table {
    /// The keys of a TOML file.
    pub const fn toml(parts: &'static [&'static [Field]]) -> Self {
        Self { form: Form::Toml, parts }
    }

    /// The keys of a JSON file.
    pub const fn json(parts: &'static [&'static [Field]]) -> Self {
        Self { form: Form::Json, parts }
    }

    /// The keys, in the order of the documents.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.parts.iter().copied().flatten()
    }

    /// The keys for people.
    pub fn rows(&self) -> Vec<Row> {
        self.fields().map(|field| field.row(self.form)).collect()
    }

    /// The key of this name.
    ///
    /// # Panics
    /// If the table has no such key.
    pub fn field(&self, name: &str) -> &'static Field {
        let field = self.fields().find(|field| field.name == name);
        field.expect("every key that is read stands in the table of keys")
    }
}

/// A name, or a text that contains names, spelled for this format.
pub(super) fn spelled(text: &str, form: Form) -> Cow<'_, str> {
    if form == Form::Toml || !text.contains('_') {
        return Cow::Borrowed(text);
    }
    let mut camel = String::with_capacity(text.len());
    let mut parts = text.split('_');
    camel.extend(parts.next());
    for part in parts {
        let (first, rest) = part.split_at(part.len().min(1));
        camel.extend([first.to_ascii_uppercase().as_str(), rest]);
    }
    Cow::Owned(camel)
}

// === impl Value ===

impl Value {
    fn node(self) -> Node {
        match self {
            Self::Truth(truth) => Node::Bool(truth),
            Self::Whole(number) => Node::Whole(number),
            Self::Number(number) => Node::Float(number),
            Self::Seconds(time) => Node::Whole(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)),
            Self::Text(_)
            | Self::Cpu(_)
            | Self::Memory(_)
            | Self::Quantity(_)
            | Self::Time(_)
            | Self::Ports(..) => Node::Text(self.to_string()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Cpu(cpu) => write!(f, "{cpu}"),
            Self::Memory(memory) => f.write_str(&exactly(*memory)),
            Self::Quantity(memory) => f.write_str(&quantity::memory_text(*memory)),
            Self::Time(time) => f.write_str(&seconds(*time)),
            Self::Seconds(time) => write!(f, "{}", time.as_secs()),
            Self::Ports(first, last) => write!(f, "{first}-{last}"),
        }
    }
}
