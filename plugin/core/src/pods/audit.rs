//! Whether what a watch told of objects is what the API server has.
//!
//! A watch may lose an event, or stay silent where the API server went back to an earlier state. So the API
//! server's objects are read page by page and compared, in one pass after the other. An object that differs in one pass is
//! under way; one that differs in the next pass too, while the watch told nothing of it, is *off*: its event is lost. The
//! pages of a pass are of one moment, so what differs may be newer than its page: the next pass is.

use std::collections::BTreeMap;
use std::time::Duration;

/// Between two pages.
pub const AUDIT_EVERY: Duration = Duration::from_secs(15);

/// Looks at one kind of objects, page after page. `K` names an object, a revision is its `resourceVersion`.
#[derive(Clone, Debug)]
pub struct Audit<K> {
    /// Objects that differed in the last pass, with the revision that was known of each then.
    before: BTreeMap<K, Option<String>>,
    /// The same of this pass.
    suspects: BTreeMap<K, Option<String>>,
    /// In the last pass: how many the API server had, and how many were known.
    counted: Option<(usize, usize)>,
}

/// Objects that the API server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<K> {
    /// Some of them, with their revisions.
    pub objects: Vec<(K, String)>,
    /// With the first page: how many there are in all.
    pub all: Option<usize>,
}

/// What a look came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked<K> {
    /// Nothing differs in this pass.
    Same,
    /// Something differs, in this page or an earlier one of the pass.
    Differs,
    /// This differed before, and nothing was told of it since.
    Off(K),
    /// The API server has `said` objects, and `known` are known, and neither changed since the last count.
    Miscounted {
        /// There.
        said: usize,
        /// Here.
        known: usize,
    },
}

// === impl Looked ===

impl<K> Looked<K> {
    /// Whether everything is to be listed anew.
    pub const fn is_off(&self) -> bool {
        match self {
            Self::Same | Self::Differs => false,
            Self::Off(_) | Self::Miscounted { .. } => true,
        }
    }
}

// === impl Audit ===

impl<K> Default for Audit<K> {
    fn default() -> Self {
        Self { before: BTreeMap::new(), suspects: BTreeMap::new(), counted: None }
    }
}

impl<K: Ord + Clone> Audit<K> {
    /// Another pass begins, with the first page.
    pub fn begin_pass(&mut self) {
        self.before = std::mem::take(&mut self.suspects);
    }

    /// A page was read from the API server. `many` objects are known after that, and of each its revision.
    pub fn look<'a>(
        &mut self,
        page: Page<K>,
        many: usize,
        known: impl Fn(&K) -> Option<&'a str>,
    ) -> Looked<K> {
        for (key, revision) in page.objects {
            let known = known(&key);
            if known == Some(&revision) {
                continue;
            }
            if self.before.get(&key).is_some_and(|before| before.as_deref() == known) {
                return Looked::Off(key);
            }
            self.suspects.insert(key, known.map(str::to_owned));
        }
        match page.all {
            _ if !self.suspects.is_empty() => Looked::Differs,
            Some(said) if self.is_miscounted(said, many) => {
                Looked::Miscounted { said, known: many }
            }
            Some(_) | None => Looked::Same,
        }
    }

    /// Whether the event of a new object, or of one that is gone, is lost.
    fn is_miscounted(&mut self, said: usize, known: usize) -> bool {
        let before = self.counted.replace((said, known));
        said != known && before == Some((said, known))
    }

    /// Everything is listed anew.
    pub fn begin(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_twice_without_a_word_of_the_watch_is_off() {
        let mut audit = Audit::default();
        let mut look = |said: &[(&'static str, &str)], known: &[(&'static str, &str)]| {
            let known: BTreeMap<&str, &str> = known.iter().copied().collect();
            let said = said.iter().map(|(name, revision)| (*name, (*revision).to_owned()));
            let page = Page { objects: said.collect(), all: None };
            audit.begin_pass();
            audit.look(page, known.len(), |name| known.get(name).copied())
        };
        assert_eq!(look(&[("a", "1"), ("b", "2")], &[("a", "1"), ("b", "2")]), Looked::Same);
        assert_eq!(look(&[("a", "3"), ("b", "2")], &[("a", "1"), ("b", "2")]), Looked::Differs);
        assert_eq!(
            look(&[("a", "4"), ("b", "2")], &[("a", "3"), ("b", "2")]),
            Looked::Differs,
            "it moves"
        );
        assert_eq!(look(&[("a", "4"), ("b", "2")], &[("a", "4"), ("b", "2")]), Looked::Same);
        assert_eq!(look(&[("a", "4"), ("b", "5")], &[("a", "4"), ("b", "2")]), Looked::Differs);
        assert_eq!(look(&[("a", "4"), ("b", "6")], &[("a", "4"), ("b", "2")]), Looked::Off("b"));
        assert_eq!(look(&[("c", "1")], &[]), Looked::Differs, "it is new");
        assert_eq!(look(&[("c", "1")], &[]), Looked::Off("c"));
    }

    #[test]
    fn a_count_that_stays_off_is_off() {
        let mut audit = Audit::<&str>::default();
        let mut count = |said, many| {
            let page = Page { objects: Vec::new(), all: Some(said) };
            audit.begin_pass();
            audit.look(page, many, |_| None) == Looked::Miscounted { said, known: many }
        };
        for (said, known, is_off) in [
            (5, 5, false),
            (5, 6, false),
            (6, 7, false),
            (6, 7, true),
            (7, 7, false),
            (6, 7, false),
        ] {
            assert_eq!(count(said, known), is_off, "{said} {known}");
        }
        audit.begin();
        let page = Page { objects: Vec::new(), all: Some(6) };
        assert_eq!(audit.look(page, 7, |_| None), Looked::Same, "all was listed anew");
    }

    #[test]
    fn what_was_newer_than_its_page_is_not_off() {
        let mut audit = Audit::default();
        let mut look = |said: &str, known: &str| {
            let page = Page { objects: vec![("a", said.to_owned())], all: None };
            audit.begin_pass();
            let looked = audit.look(page, 1, |_| Some(known));
            // A later page of the same pass has other objects.
            let other = Page { objects: vec![("b", "1".to_owned())], all: None };
            (looked, audit.look(other, 1, |_| Some("1")))
        };
        assert_eq!(look("5", "6"), (Looked::Differs, Looked::Differs), "the event came meanwhile");
        assert_eq!(look("6", "6"), (Looked::Same, Looked::Same));
        assert_eq!(look("7", "6").0, Looked::Differs);
        assert_eq!(look("8", "6").0, Looked::Off("a"));
    }
}
