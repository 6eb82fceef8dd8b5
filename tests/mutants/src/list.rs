//! The mutants that there are, as cargo-mutants 27 lists them.

use anyhow::{Context, Result};
use serde::Deserialize;

/// One change of the code.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Mutant {
    /// With its file, line and column.
    pub(crate) name: String,
    pub(crate) file: String,
    /// What is replaced.
    pub(crate) span: Span,
    pub(crate) replacement: String,
    /// The function that it is in, if it is in one.
    pub(crate) function: Option<Function>,
    pub(crate) diff: String,
}

/// A function, with its attributes.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Function {
    pub(crate) span: Span,
}

/// From the first character to behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Place,
    pub(crate) end: Place,
}

/// A character, by its line and column, both from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// All, from the standard input.
pub(crate) fn read() -> Result<Vec<Mutant>> {
    serde_json::from_reader(std::io::stdin().lock()).context("not what cargo-mutants lists")
}

// === impl Mutant ===

impl Mutant {
    /// The same wherever in its file the mutant stands, as long as the text around it stays.
    pub(crate) fn key(&self, seed: &str) -> String {
        let change: Vec<&str> = self.name.splitn(4, ':').collect();
        let text = self.diff.lines().filter(|line| !line.starts_with("@@ "));
        let change = [change.first(), change.last()].into_iter().flatten().copied();
        let words = [seed].into_iter().chain(change).chain(text);
        format!("{:016x}", words.fold(BASIS, |hash, word| fnv(fnv(hash, word), "\n")))
    }
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: the same in every release, unlike the standard library's.
fn fnv(hash: u64, word: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    // The bits of the last bytes go everywhere, since keys are sorted.
    let hash = word.bytes().fold(hash, step);
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_where_only_the_line_changes() {
        let place = Place { line: 1, column: 1 };
        let at = |name: &str, diff: &str| Mutant {
            name: name.to_owned(),
            file: "a.rs".to_owned(),
            span: Span { start: place, end: place },
            replacement: String::new(),
            function: None,
            diff: diff.to_owned(),
        };
        let one = at("a.rs:7:3: replace < with > in f", "@@ -1 +1 @@\n-x\n+y");
        let moved = at("a.rs:9:5: replace < with > in f", "@@ -3 +3 @@\n-x\n+y");
        let other = at("a.rs:7:3: replace < with > in f", "@@ -1 +1 @@\n-x\n+z");
        assert_eq!(one.key("a"), moved.key("a"));
        assert!(one.key("a") != one.key("b") && one.key("a") != other.key("a"));
    }
}
