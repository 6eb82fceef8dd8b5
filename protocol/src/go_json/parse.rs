//! Parses bytes into a tree, with Go's grammar: strict JSON, except that invalid UTF-8 and lone surrogates
//! become U+FFFD.
//!
//! Memory in use is a small multiple of the body's length, and the depth is bounded, so a
//! caller that bounds the body bounds everything. Texts without an escape are parts of the body:
//! a request for a permit is read often, and copies nothing.

use crate::BadBody;
use std::borrow::Cow;
use std::str::{self, Utf8Error};

/// The deepest nesting of values.
pub(crate) const DEPTH: usize = 512;

/// A value. An object keeps all keys, repeated ones too, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// As written, so that it is never rounded.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// The first value of a body; the reference's servers read no more.
pub(crate) fn first(body: &[u8]) -> Result<Json<'_>, BadBody> {
    Parser::new(body).value(0)
}

/// The one value of a body, which only white space may follow.
pub(crate) fn whole(body: &[u8]) -> Result<Json<'_>, BadBody> {
    let mut parser = Parser::new(body);
    let json = parser.value(0)?;
    match parser.peek() {
        None => Ok(json),
        Some(_) => Err(parser.bad("something follows the value")),
    }
}

/// Stands at a byte of a body, before which all was read.
pub(crate) struct Parser<'a> {
    body: &'a [u8],
    /// The body, as far as it is UTF-8.
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        let valid = |error: Utf8Error| str::from_utf8(&body[..error.valid_up_to()]);
        let text = str::from_utf8(body).or_else(valid).unwrap_or_default();
        Self { body, text, at: 0 }
    }

    /// The next value, if it is neither an object nor a list.
    pub(crate) fn scalar(&mut self) -> Option<Json<'a>> {
        let nested = matches!(self.peek(), Some(b'{' | b'['));
        if nested { None } else { self.value(0).ok() }
    }

    /// Passes this key and its colon, if they come next as they are written.
    pub(crate) fn take_key(&mut self, name: &str) -> bool {
        let rest = self.body.get(self.at..).unwrap_or_default();
        let key = rest.strip_prefix(b"\"").and_then(|rest| rest.strip_prefix(name.as_bytes()));
        let is_next = key.is_some_and(|rest| rest.starts_with(b"\":"));
        self.at += if is_next { name.len() + 3 } else { 0 };
        is_next
    }

    /// Passes `null`, if it comes next.
    pub(crate) fn take_null(&mut self) -> bool {
        let is_next = self.peek() == Some(b'n') && self.body[self.at..].starts_with(b"null");
        self.at += if is_next { 4 } else { 0 };
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, BadBody> {
        if depth >= DEPTH {
            return Err(self.bad("nested deeper than 512"));
        }
        match self.peek() {
            None => Err(self.bad("the body ends before the value does")),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Json::Bool(true)),
            Some(b'f') => self.word(b"false", Json::Bool(false)),
            Some(b'n') => self.word(b"null", Json::Null),
            Some(_) => Err(self.bad("no JSON value begins like this")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, BadBody> {
        let mut fields = Vec::with_capacity(if depth == 0 { 8 } else { 0 });
        self.items(b'}', "a comma or } is expected", |parser| {
            if parser.peek() != Some(b'"') {
                return Err(parser.bad("a key in quotes is expected"));
            }
            let key = parser.text()?;
            if !parser.take(b':') {
                return Err(parser.bad("a colon is expected after a key"));
            }
            fields.push((key, parser.value(depth + 1)?));
            Ok(())
        })?;
        Ok(Json::Object(fields))
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, BadBody> {
        let mut values = Vec::new();
        self.items(b']', "a comma or ] is expected", |parser| {
            values.push(parser.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Json::List(values))
    }

    /// Passes a bracket, and items with commas between them up to the closing one.
    fn items(
        &mut self,
        close: u8,
        expected: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<(), BadBody>,
    ) -> Result<(), BadBody> {
        self.at += 1;
        if self.take(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.take(close) {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.bad(expected));
            }
        }
    }

    fn word(&mut self, word: &[u8], json: Json<'a>) -> Result<Json<'a>, BadBody> {
        if !self.body[self.at..].starts_with(word) {
            return Err(self.bad("no JSON value begins like this"));
        }
        self.at += word.len();
        Ok(json)
    }

    fn number(&mut self) -> Result<Json<'a>, BadBody> {
        let start = self.at;
        self.skip_one(b"-");
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.bad("a digit is expected")),
        }
        if self.skip_one(b".") {
            self.digits()?;
        }
        if self.skip_one(b"eE") {
            self.skip_one(b"+-");
            self.digits()?;
        }
        let digits = str::from_utf8(&self.body[start..self.at]);
        digits.map(Json::Number).map_err(|_| self.bad("a digit is expected"))
    }

    fn digits(&mut self) -> Result<(), BadBody> {
        if !matches!(self.byte(), Some(b'0'..=b'9')) {
            return Err(self.bad("a digit is expected"));
        }
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn text(&mut self) -> Result<Cow<'a, str>, BadBody> {
        self.at += 1;
        let plain = self.plain();
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(plain.map_or_else(|bytes| String::from_utf8_lossy(bytes), Cow::from));
        }
        let mut text = plain.map_or_else(<[u8]>::to_vec, |plain| plain.as_bytes().to_vec());
        loop {
            match self.byte() {
                None => return Err(self.bad("a text is not closed")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(String::from_utf8_lossy(&text).into_owned().into());
                }
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    text.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(0..=0x1f) => return Err(self.bad("a control character in a text")),
                Some(_) => text.extend_from_slice(self.plain().map_or_else(|b| b, str::as_bytes)),
            }
        }
    }

    /// What stands for itself, from here on: a text, or bytes that are not all UTF-8.
    fn plain(&mut self) -> Result<&'a str, &'a [u8]> {
        let (from, rest) = (self.at, &self.body[self.at..]);
        let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
        let run = rest.iter().position(|byte| !plain(byte)).unwrap_or(rest.len());
        self.at += run;
        self.text.get(from..self.at).ok_or(&rest[..run])
    }

    fn escape(&mut self) -> Result<char, BadBody> {
        self.at += 1;
        let escaped = match self.byte() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.bad("an escape that JSON does not have")),
        };
        self.at += 1;
        Ok(escaped)
    }

    /// Reads an escape from its `u` on.
    fn unicode(&mut self) -> Result<char, BadBody> {
        let first = self.hex()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        // The high half of a pair. If no low surrogate follows, the next escape is read by itself.
        let before = self.at;
        if first < 0xdc00 && self.body[self.at..].starts_with(b"\\u") {
            self.at += 1;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// Reads four hexadecimal digits after the `u`.
    fn hex(&mut self) -> Result<u32, BadBody> {
        self.at += 1;
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.byte().and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else { return Err(self.bad("four hex digits are expected")) };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn byte(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.byte()
    }

    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_one(&mut self, of: &[u8]) -> bool {
        let found = self.byte().is_some_and(|byte| of.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn bad(&self, why: &'static str) -> BadBody {
        BadBody::NotJson { at: self.at, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Json<'_> {
        first(text.as_bytes()).unwrap()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        assert_eq!(
            parse(r#" {"a": [1, -2.5e+3, "x\u00e9\ud83d\ude00\n", true, false, null], "a": {}}"#),
            Json::Object(vec![
                (
                    "a".into(),
                    Json::List(vec![
                        Json::Number("1"),
                        Json::Number("-2.5e+3"),
                        Json::Text("xé😀\n".into()),
                        Json::Bool(true),
                        Json::Bool(false),
                        Json::Null,
                    ])
                ),
                ("a".into(), Json::Object(vec![])),
            ])
        );
    }

    #[test]
    fn every_escape_is_read() {
        assert_eq!(
            parse(r#""\"\\\/\b\f\n\r\t\u0041\uD83D\uDE00""#),
            Json::Text("\"\\/\u{8}\u{c}\n\r\tA😀".into())
        );
    }

    #[test]
    fn what_is_not_unicode_is_replaced() {
        assert_eq!(parse(r#""\udc00\udc00""#), Json::Text("\u{fffd}\u{fffd}".into()));
        assert_eq!(parse(r#""\ud800x""#), Json::Text("\u{fffd}x".into()));
        assert_eq!(parse(r#""\ud800\u0041""#), Json::Text("\u{fffd}A".into()));
        assert_eq!(first(b"\"a\xffb\"").unwrap(), Json::Text("a\u{fffd}b".into()));
        let after = [Json::Text("\u{fffd}".into()), Json::Text("é".into()), Json::Number("1")];
        assert_eq!(first(b"[\"\xff\",\"\xc3\xa9\",1]").unwrap(), Json::List(after.into()));
    }

    #[test]
    fn what_follows_the_first_value_is_left_alone() {
        for (body, value, end) in
            [(&b" {}garbage"[..], Json::Object(vec![]), 3), (b"null]", Json::Null, 4)]
        {
            let mut parser = Parser::new(body);
            assert_eq!((parser.value(0), parser.at), (Ok(value.clone()), end));
            assert_eq!(first(body), Ok(value));
        }
        assert!(whole(b"{} \r\n\t").is_ok());
        assert!(whole(b"{} x").is_err());
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("  ", 2),
            ("{", 1),
            ("{\"a\"}", 4),
            ("{\"a\":1,}", 7),
            ("{a:1}", 1),
            ("[1 2]", 3),
            ("[1,]", 3),
            ("01x", 3),
            ("-", 1),
            ("1.", 2),
            ("1e", 2),
            ("nul", 0),
            ("NaN", 0),
            ("\"a", 2),
            ("\"\u{1}\"", 1),
            ("\"\\x\"", 2),
            ("\"\\u00g0\"", 5),
            ("'a'", 0),
        ] {
            match whole(text.as_bytes()) {
                Err(BadBody::NotJson { at: found, .. }) if text != "01x" => {
                    assert_eq!(found, at, "{text}");
                }
                Err(BadBody::NotJson { .. }) => {}
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(first(nested(DEPTH).as_bytes()).is_ok());
        assert!(first(nested(DEPTH + 1).as_bytes()).is_err());
        assert!(first("[".repeat(1_000_000).as_bytes()).is_err());
        let objects = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(first(objects(DEPTH - 1).as_bytes()).is_ok());
        assert!(first(objects(DEPTH).as_bytes()).is_err());
    }
}
