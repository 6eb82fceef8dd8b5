//! Writes fields as text, byte for byte as Go's `encoding/json` does.

use crate::AgentId;

pub(crate) trait Write {
    fn write(&self, out: &mut Writer);
}

/// The text of a message, as far as it is written.
pub(crate) struct Writer(String);

/// What most messages fit into.
const USUAL: usize = 128;

/// The keys of an object without its own type.
pub(crate) struct Group<'a>(pub(crate) &'a [(&'a str, &'a dyn Write)]);

/// The bytes of a message.
pub(crate) fn encode(message: &dyn Write) -> Vec<u8> {
    let mut writer = Writer(String::with_capacity(USUAL));
    message.write(&mut writer);
    writer.0.into_bytes()
}

// === impl Writer ===

impl Writer {
    /// An object with these keys, in this order.
    pub(crate) fn object(&mut self, fields: &[(&str, &dyn Write)]) {
        self.0.push('{');
        for (index, (key, value)) in fields.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.text(key);
            self.0.push(':');
            value.write(self);
        }
        self.0.push('}');
    }

    /// Text that already is JSON.
    pub(crate) fn plain(&mut self, json: &str) {
        self.0.push_str(json);
    }

    /// A text, escaped as Go does, HTML's special characters included.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.push('"');
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'.';
        if text.bytes().all(plain) {
            self.0.push_str(text);
            return self.0.push('"');
        }
        for c in text.chars() {
            match c {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    self.0.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                _ => self.0.push(c),
            }
        }
        self.0.push('"');
    }
}

// === impl Write ===

impl Write for Group<'_> {
    fn write(&self, out: &mut Writer) {
        out.object(self.0);
    }
}

impl<T: Write> Write for Option<T> {
    fn write(&self, out: &mut Writer) {
        match self {
            Some(value) => value.write(out),
            None => out.plain("null"),
        }
    }
}

impl<T: Write> Write for Box<T> {
    fn write(&self, out: &mut Writer) {
        (**self).write(out);
    }
}

impl Write for bool {
    fn write(&self, out: &mut Writer) {
        out.plain(if *self { "true" } else { "false" });
    }
}

impl Write for String {
    fn write(&self, out: &mut Writer) {
        out.text(self);
    }
}

impl Write for u16 {
    fn write(&self, out: &mut Writer) {
        out.plain(&self.to_string());
    }
}

impl Write for AgentId {
    fn write(&self, out: &mut Writer) {
        out.text(&self.to_string());
    }
}

/// The shortest decimal that reads back as the same number, with an exponent if it is very small or large.
impl Write for f32 {
    fn write(&self, out: &mut Writer) {
        let size = self.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            out.plain(&self.to_string());
        } else {
            let text = format!("{self:e}");
            out.plain(&if size < 1.0 { text } else { text.replace('e', "e+") });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &dyn Write) -> String {
        String::from_utf8(encode(value)).unwrap()
    }

    #[test]
    fn texts_are_escaped_as_go_does() {
        assert_eq!(
            written(&"a\"\\\n\r\t\u{1}<&>\u{2028}é/".to_owned()),
            r#""a\"\\\n\r\t\u0001\u003c\u0026\u003e\u2028é/""#
        );
    }

    #[test]
    fn floats_are_as_short_as_they_read_back() {
        for (value, text) in [
            (0.0f32, "0"),
            (-0.0, "-0"),
            (1.53, "1.53"),
            (0.1, "0.1"),
            (100.0, "100"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (3.4e38, "3.4e+38"),
            (16_777_216.0, "16777216"),
        ] {
            assert_eq!(written(&value), text);
        }
    }
}
