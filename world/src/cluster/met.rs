//! What a history met, so that a run says what it has tried.

use std::collections::BTreeMap;

/// How often each was met, by a word for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met(BTreeMap<&'static str, u64>);

// === impl Met ===

impl Met {
    /// How often each was met, by word.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(word, many)| (*word, *many))
    }

    /// How often this was met.
    pub fn of(&self, word: &str) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    /// Adds what another history met.
    pub fn add(&mut self, other: &Self) {
        other.counts().for_each(|(word, many)| *self.0.entry(word).or_default() += many);
    }

    /// What was met, each once.
    pub fn once(&self) -> Self {
        Self(self.0.keys().map(|word| (*word, 1)).collect())
    }

    pub(crate) fn note(&mut self, word: &'static str) {
        *self.0.entry(word).or_default() += 1;
    }

    pub(crate) fn note_if(&mut self, word: &'static str, is_met: bool) {
        if is_met {
            self.note(word);
        }
    }
}
