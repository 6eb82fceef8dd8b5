//! On which nodes room came free.

use std::collections::BTreeSet;

/// The nodes on which room came free, so that refused pods are worth another look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freed(BTreeSet<String>);

// === impl Freed ===

impl Freed {
    /// Whether room came free on no node.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn note(&mut self, node: &str, came_free: bool) {
        if came_free {
            self.0.insert(node.to_owned());
        }
    }

    pub(crate) fn and(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}
