//! Words: text of a peer, made safe to show, enums as JSON spells them, and which word a misspelt one means.

use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

/// The most letters in which a misspelt word may differ from the right one.
const TYPOS: usize = 3;

/// At most `most` characters of a text, without control characters; `…` marks a cut.
pub fn sanitized(text: &str, most: usize) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(most).map(harmless).collect();
    if text.chars().nth(most).is_some() {
        short.push('…');
    }
    short
}

/// The known word that a misspelt one probably means: the one that differs in the fewest letters, if those are few.
pub fn meant<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = TYPOS.min(1 + written.len() / 5);
    // Keeps a very long text cheap.
    let as_long = |word: &&str| written.len().abs_diff(word.len()) <= most;
    let near = known.into_iter().filter(as_long);
    let (typos, word) = near.map(|word| (strsim::osa_distance(written, word), word)).min()?;
    (typos <= most).then_some(word)
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

    #[test]
    fn a_misspelt_word_means_the_nearest_one_if_few_letters_differ() {
        let known = ["--listen", "--root", "act", "none"];
        for (written, word) in [
            ("--lisen", Some("--listen")),
            ("--litsen", Some("--listen")),
            ("listen", Some("--listen")),
            ("Act", Some("act")),
            ("nnoe", Some("none")),
            ("all", None),
            ("on", None),
            ("--cgroup", None),
            ("", None),
        ] {
            assert_eq!(meant(written, known), word, "{written}");
        }
        assert_eq!(meant(&"a".repeat(1 << 20), known), None);
    }
}
