//! One key of a file, and the table of all of them.

use super::kind::{Kind, Typed, exactly, seconds};
use super::node::Node;
use crate::{Bytes, MilliCpu, quantity};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// One key of a file: everything that is known of it, stated once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// With its table, as `max.memory`. A table in JSON has `maxBatchSize` for `max_batch_size`.
    pub name: &'static str,
    /// How a value is written, and which are allowed.
    pub kind: Kind,
    /// What holds without it. With neither this nor `otherwise` the key is required.
    default: Option<Value>,
    /// The same in words, or what these add to the default.
    otherwise: &'static str,
    /// What its range adds to that of its kind, with the sign before it: `, other than vms_dir`.
    note: &'static str,
    /// What it is for.
    meaning: &'static str,
}

/// What holds without a key, as a person would write it.
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
    /// `2`, which are seconds.
    Seconds(Duration),
    /// The first and the last: `10310-10399`.
    Ports(u16, u16),
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// TOML, whose keys are ours: `max_batch_size`.
    Toml,
    /// JSON, whose keys are the reference's, `maxBatchSize`, and match whatever their case, as Go
    /// reads them.
    Json,
}

/// The keys of one file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    form: Form,
    parts: &'static [&'static [Field]],
}

/// One key for people: a row of a page in docs/.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// How it is written; `JSON` in JSON, where everything is written as JSON is.
    pub kind: String,
    /// What holds without it.
    pub default: String,
    /// What may stand there; errors quote it.
    pub range: String,
    /// What it is for.
    pub meaning: String,
}

/// A required key.
pub const fn key(name: &'static str, kind: Kind, meaning: &'static str) -> Field {
    Field { name, kind, default: None, otherwise: "", note: "", meaning }
}

// === impl Field ===

impl Field {
    /// With a default.
    pub const fn or(self, default: Value) -> Self {
        Self { default: Some(default), ..self }
    }

    /// With words for what holds without it: where there is no default, or to add to it.
    pub const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// With what its range adds to that of its kind: `, other than vms_dir`.
    pub const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// The same key in another file, where it is there for this.
    pub const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// What `--help` says of an option in its place.
    pub fn help(&self) -> String {
        let (meaning, range) = (self.meaning.trim_end_matches('.'), self.range(Form::Toml));
        format!("{meaning}: {range}. Wins over the file")
    }

    /// The value that such an option says.
    ///
    /// # Errors
    /// What may stand there.
    pub fn parse<T: Typed>(&self, text: &str) -> Result<T, String> {
        let node = Node::Text(text.to_owned());
        T::read(&self.kind, &node).ok_or_else(|| self.complaint(&self.kind, &node, Form::Toml))
    }

    /// What holds without it.
    pub(super) fn default<T>(&self, read: impl FnOnce(&Node) -> Option<T>) -> T {
        let value = self.default.and_then(|value| read(&value.node()));
        value.expect("a field that is read with its default has one that it takes")
    }

    /// What may stand there.
    pub(super) fn range(&self, form: Form) -> String {
        // Notes name other keys.
        spelled(&format!("{}{}", self.kind.allowed(), self.note), form).into_owned()
    }

    /// What is wrong with a value that it does not take, as this kind.
    pub(super) fn complaint(&self, kind: &Kind, node: &Node, form: Form) -> String {
        kind.complaint(node, &self.range(form))
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
    /// Of a TOML file.
    pub const fn toml(parts: &'static [&'static [Field]]) -> Self {
        Self { form: Form::Toml, parts }
    }

    /// Of a JSON file.
    pub const fn json(parts: &'static [&'static [Field]]) -> Self {
        Self { form: Form::Json, parts }
    }

    /// What the file is written in.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Its keys, in the order of the documents.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.parts.iter().copied().flatten()
    }

    /// Its keys for people.
    pub fn rows(&self) -> Vec<Row> {
        self.fields().map(|field| field.row(self.form)).collect()
    }

    /// The key of this name.
    ///
    /// # Panics
    /// If there is none: what is read must stand in the table.
    pub fn field(&self, name: &str) -> &'static Field {
        let field = self.fields().find(|field| field.name == name);
        field.expect("every key that is read stands in the table of keys")
    }
}

/// A name, or a text with names in it, as a file of this form has it.
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
