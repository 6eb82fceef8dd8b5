//! Words: text of a peer, made safe to show, and enums as JSON spells them.

use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

/// At most `most` characters of a text, without control characters; `…` marks a cut.
pub fn sanitized(text: &str, most: usize) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(most).map(harmless).collect();
    if text.chars().nth(most).is_some() {
        short.push('…');
    }
    short
}

/// The value that JSON spells like this.
pub(crate) fn named<T: DeserializeOwned>(word: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(word)).ok()
}

/// Displays values of enums without fields as JSON spells them.
macro_rules! displayed {
    ($($type:ty),+) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    )+};
}

pub(crate) use displayed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_without_control_characters_is_unchanged() {
        assert_eq!(sanitized("grün", 4), "grün");
        assert_eq!(sanitized("x\u{1b}[2J\n", 9), "x\u{fffd}[2J\u{fffd}");
        assert_eq!(sanitized("grüner", 4), "grün…");
    }
}
