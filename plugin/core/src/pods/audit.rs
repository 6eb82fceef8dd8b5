//! Whether what a watch told of objects is what the API server has.
//!
//! A watch may lose an event, or stay silent where the API server went back to an earlier state. So the API
//! server's objects are read page by page and compared. An object that differs at one look is under
//! way; one that differs at the next look too, while the watch told nothing of it, is *off*: its event is lost.

use std::collections::BTreeMap;

/// Looks at one kind of objects, page after page. `K` names an object, a revision is its `resourceVersion`.
#[derive(Clone, Debug)]
pub struct Audit<K> {
    /// Objects that differed at the last look, with the revision that was known of each then.
    suspects: BTreeMap<K, Option<String>>,
    /// At the last look at the whole: how many the API server had, and how many were known.
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
    /// Nothing differs: the next page is due.
    Same,
    /// Something differs: the same page is to be looked at again.
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

// === impl Audit ===

impl<K> Default for Audit<K> {
    fn default() -> Self {
        Self { suspects: BTreeMap::new(), counted: None }
    }
}

impl<K: Ord + Clone> Audit<K> {
    /// A page was read from the API server. `many` objects are known after that, and of each its revision.
    pub fn look<'a>(
        &mut self,
        page: Page<K>,
        many: usize,
        known: impl Fn(&K) -> Option<&'a str>,
    ) -> Looked<K> {
        let before = std::mem::take(&mut self.suspects);
        for (key, revision) in page.objects {
            let known = known(&key);
            if known == Some(&revision) {
                continue;
            }
            if before.get(&key).is_some_and(|before| before.as_deref() == known) {
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
}
