//! Pods that are gone, so that a late word on one of them does not bring it back.
//!
//! A name has one pod at a time. A pod that was *deleted* never returns. A pod that was *replaced* by
//! another of its name is gone for as long as the other is there: if the other turns out to be the older
//! one and goes, the word on the replaced one counts again. Bounded: the oldest is forgotten.

use std::collections::{BTreeMap, VecDeque};

/// As many are remembered.
const MOST: usize = 10_000;

/// The uids of pods that are gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    uids: BTreeMap<String, How>,
    /// In the order in which they went; some may have come back.
    order: VecDeque<String>,
}

/// How a pod went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The API server said so.
    Deleted,
    /// Another pod of its name was seen.
    Replaced,
}

// === impl Gone ===

impl Gone {
    /// A pod went.
    pub(crate) fn add(&mut self, uid: &str, how: How) {
        if self.uids.insert(uid.to_owned(), how).is_none() {
            self.order.push_back(uid.to_owned());
        }
        while self.order.len() > MOST {
            let oldest = self.order.pop_front();
            oldest.map(|uid| self.uids.remove(&uid));
        }
    }

    /// A pod is there after all.
    pub(crate) fn remove(&mut self, uid: &str) {
        if self.uids.remove(uid).is_some() {
            self.order.retain(|gone| gone != uid);
        }
    }

    /// Whether the API server said that a pod is gone.
    pub(crate) fn was_deleted(&self, uid: &str) -> bool {
        self.uids.get(uid) == Some(&How::Deleted)
    }

    /// Whether a pod is gone, while another has its name or none.
    pub(crate) fn holds(&self, uid: &str, is_name_taken: bool) -> bool {
        match self.uids.get(uid) {
            Some(How::Deleted) => true,
            Some(How::Replaced) => is_name_taken,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut gone = Gone::default();
        for nth in 0..=MOST {
            gone.add(&nth.to_string(), How::Deleted);
        }
        assert!(!gone.holds("0", true) && gone.holds("1", false));
        gone.remove("1");
        assert!(!gone.holds("1", false));
        assert_eq!((gone.uids.len(), gone.order.len()), (MOST - 1, MOST - 1));
    }

    #[test]
    fn a_replaced_pod_may_return_once_its_name_is_free() {
        let mut gone = Gone::default();
        gone.add("old", How::Replaced);
        assert!(gone.holds("old", true) && !gone.holds("old", false));
        gone.add("old", How::Deleted);
        assert!(gone.holds("old", false));
    }
}
