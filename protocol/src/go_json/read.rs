//! Fills fields from a tree, with Go's rules: see [`super`].
//!
//! [`Read::read`] changes a value in place: a missing key or `null` leaves it unchanged, and a repeated
//! key is merged as in Go. Errors name the field.

use super::{Json, Parser, Write, Writer};
use crate::quantity::QuantityError;
use crate::{AgentId, BadBody, InformantVersion, PluginVersion, Sequence};
use std::fmt;
use uuid::Uuid;

pub(crate) trait Read {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody>;

    /// Reads what comes next without a tree, if its objects have exactly the keys of the type, in
    /// their order. A value that is no object is read as any other of its kind.
    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        self.read(&Path::Body, &from.scalar()?).ok()
    }
}

/// The place of a value in the body.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Body,
    Key(&'a Path<'a>, &'a str),
}

/// The keys of an object without its own type.
pub(crate) struct Group<'a, 'b>(pub(crate) &'a mut [(&'b str, &'a mut dyn Read)]);

/// Reads the keys of an object into fields; unknown keys are ignored.
pub(crate) fn read_object(
    at: &Path<'_>,
    json: &Json,
    fields: &mut [(&str, &mut dyn Read)],
) -> Result<(), BadBody> {
    let entries = match json {
        Json::Null => return Ok(()),
        Json::Object(entries) => entries,
        Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => {
            return Err(BadBody::field(at, json, "an object"));
        }
    };
    for (key, value) in entries {
        let exact = fields.iter().position(|(name, _)| name == key);
        let found = exact.or_else(|| fields.iter().position(|(name, _)| folds(name, key)));
        if let Some(index) = found {
            let (name, field) = &mut fields[index];
            field.read(&Path::Key(at, name), value)?;
        }
    }
    Ok(())
}

/// Reads an object with exactly these keys, in this order.
pub(crate) fn read_written(
    from: &mut Parser<'_>,
    fields: &mut [(&str, &mut dyn Read)],
) -> Option<()> {
    read_written_but(from, fields, 0)
}

/// The same, where as many of the last keys may be missing.
pub(crate) fn read_written_but(
    from: &mut Parser<'_>,
    fields: &mut [(&str, &mut dyn Read)],
    optional: usize,
) -> Option<()> {
    let required = fields.len().saturating_sub(optional);
    let mut before = b'{';
    for (nth, (name, field)) in fields.iter_mut().enumerate() {
        if nth >= required && before == b',' && from.take(b'}') {
            return Some(());
        }
        if !from.take(before) || !from.take_key(name) {
            return None;
        }
        field.read_written(from)?;
        before = b',';
    }
    (before == b',' && from.take(b'}')).then_some(())
}

/// An amount, from a text or a bare number; `null` is zero.
pub(crate) fn quantity<T: Default>(
    at: &Path<'_>,
    json: &Json,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> Result<T, BadBody> {
    match json {
        Json::Null => Ok(T::default()),
        Json::Number(text) => parse(text).map_err(|error| BadBody::field(at, json, error)),
        Json::Text(text) => parse(text).map_err(|error| BadBody::field(at, json, error)),
        Json::Bool(_) | Json::List(_) | Json::Object(_) => {
            Err(BadBody::field(at, json, QuantityError::Form))
        }
    }
}

/// Go's case folding: ASCII, and the two other letters that fold into ASCII.
pub(crate) fn folds(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(key.chars().map(fold))
}

// === impl Path ===

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("body"),
            Self::Key(Self::Body, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
        }
    }
}

// === impl Json ===

/// For errors: scalars as written, other values by kind.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

// === impl Read ===

impl Read for Group<'_, '_> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        read_object(at, json, self.0)
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        read_written(from, self.0)
    }
}

/// Go's pointer: `null` sets it to nil.
impl<T: Read + Default> Read for Option<T> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        if *json == Json::Null {
            *self = None;
            return Ok(());
        }
        self.get_or_insert_default().read(at, json)
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        if from.take_null() {
            *self = None;
            return Some(());
        }
        self.get_or_insert_default().read_written(from)
    }
}

/// What few messages have.
impl<T: Read> Read for Box<T> {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        (**self).read(at, json)
    }

    fn read_written(&mut self, from: &mut Parser<'_>) -> Option<()> {
        (**self).read_written(from)
    }
}

impl Read for bool {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let value = if let Json::Bool(value) = json { Some(*value) } else { None };
        put(self, value, at, json, "true or false")
    }
}

impl Read for String {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let text = if let Json::Text(text) = json { Some(text.as_ref().to_owned()) } else { None };
        put(self, text, at, json, "a text")
    }
}

/// Numbers as their types read them; the parser has checked the grammar.
macro_rules! numbers {
    ($($type:ty: $is_valid:expr, $expected:literal;)+) => {$(
        impl Read for $type {
            fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
                let text = if let Json::Number(text) = json { Some(text) } else { None };
                let number = text.and_then(|text| text.parse().ok()).filter($is_valid);
                put(self, number, at, json, $expected)
            }
        }
    )+};
}

numbers! {
    u16: |_| true, "a whole number from 0 to 65535";
    u32: |_| true, "a whole number from 0 to 4294967295";
    u64: |_| true, "a whole number from 0 to 18446744073709551615";
    f32: |number: &Self| number.is_finite(), "a number of at most 3.4e38";
    f64: |number: &Self| number.is_finite(), "a number of at most 1.8e308";
}

/// Types that are a number on the wire.
macro_rules! numbered {
    ($($type:ty),+) => {$(
        impl Read for $type {
            fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
                let mut number = self.number();
                number.read(at, json)?;
                *self = Self::from_number(number);
                Ok(())
            }
        }

        impl Write for $type {
            fn write(&self, out: &mut Writer) {
                out.plain(&self.number().to_string());
            }
        }
    )+};
}

numbered!(Sequence, PluginVersion, InformantVersion);

impl Read for AgentId {
    fn read(&mut self, at: &Path<'_>, json: &Json) -> Result<(), BadBody> {
        let mut text = String::new();
        text.read(at, json)?;
        put(self, Uuid::parse_str(&text).ok().map(Self::from), at, json, "a UUID")
    }
}

/// Sets a value, which is `None` if `json` is not as expected; `null` changes nothing.
fn put<T>(
    place: &mut T,
    value: Option<T>,
    at: &Path<'_>,
    json: &Json,
    expected: &str,
) -> Result<(), BadBody> {
    if *json != Json::Null {
        *place = value.ok_or_else(|| BadBody::field(at, json, expected))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::go_json::{decode_first, keys};

    #[derive(Debug, Default, PartialEq)]
    struct Shelf {
        count: u16,
        label: String,
        inner: Option<bool>,
    }

    keys!(Shelf { "countOf": count, "nested": { "label": label, "skip": inner } });

    fn shelf(text: &str) -> Result<Shelf, String> {
        decode_first(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_match_whatever_their_case() {
        let wanted = Shelf { count: 7, label: "x".into(), inner: Some(true) };
        for text in [
            r#"{"countOf":7,"nested":{"label":"x","skip":true}}"#,
            r#"{"COUNTOF":7,"NeSted":{"LABEL":"x","ſKip":true},"other":[{}]}trailing"#,
            r#"{"countOf":1,"nested":{"skip":true},"nested":{"label":"x"},"countof":7}"#,
            r#"{"countOf":7,"countOf":null,"nested":{"label":"x","label":null,"skip":true}}"#,
        ] {
            assert_eq!(shelf(text).as_ref(), Ok(&wanted), "{text}");
        }
    }

    #[test]
    fn missing_and_null_are_zero() {
        for text in ["{}", "null", r#"{"countOf":null,"nested":null}"#, r#"{"nested":{}}"#] {
            assert_eq!(shelf(text), Ok(Shelf::default()), "{text}");
        }
        assert_eq!(
            shelf(r#"{"nested":{"skip":true,"skip":null}}"#),
            Ok(Shelf::default()),
            "null takes a pointer away"
        );
    }

    #[test]
    fn an_error_names_the_field_the_value_and_the_limit() {
        for (text, error) in [
            ("[]", "body: a list is not an object"),
            (r#"{"countOf":70000}"#, "countOf: 70000 is not a whole number from 0 to 65535"),
            (r#"{"countOf":-1}"#, "countOf: -1 is not a whole number from 0 to 65535"),
            (r#"{"countOf":1.0}"#, "countOf: 1.0 is not a whole number from 0 to 65535"),
            (r#"{"countOf":1e2}"#, "countOf: 1e2 is not a whole number from 0 to 65535"),
            (r#"{"countOf":"1"}"#, "countOf: \"1\" is not a whole number from 0 to 65535"),
            (r#"{"nested":3}"#, "nested: 3 is not an object"),
            (r#"{"nested":{"label":3}}"#, "nested.label: 3 is not a text"),
            (r#"{"nested":{"SKIP":"no"}}"#, "nested.skip: \"no\" is not true or false"),
        ] {
            assert_eq!(shelf(text), Err(error.to_owned()), "{text}");
        }
    }
}
