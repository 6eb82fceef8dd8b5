//! Log lines about peers, of which there may be any number: each once a minute at most.
//!
//! A peer that is refused tries again and again. The first refusal of a kind is logged, and those of the next minute
//! are only counted, wherever they are counted. The kinds that are remembered have a bound; beyond it nothing more is
//! logged until some are a minute old.

use crate::catch_panic::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Between two lines of one kind.
const EVERY: Duration = Duration::from_secs(60);
/// Kinds that are remembered.
const MOST: usize = 1_024;

/// When each kind of line was last logged.
#[derive(Debug)]
pub struct Seldom<K>(Mutex<BTreeMap<K, Instant>>);

// === impl Seldom ===

impl<K: Ord> Seldom<K> {
    /// Whether a line of this kind is to be logged at this moment. It then counts as logged.
    pub fn is_due(&self, kind: K) -> bool {
        let (now, mut said) = (Instant::now(), lock(&self.0));
        let is_old = |at: &Instant| now.duration_since(*at) >= EVERY;
        if said.get(&kind).is_some_and(|at| !is_old(at)) {
            return false;
        }
        if said.len() >= MOST {
            said.retain(|_, at| !is_old(at));
        }
        let has_place = said.len() < MOST || said.contains_key(&kind);
        if has_place {
            said.insert(kind, now);
        }
        has_place
    }
}

impl<K> Default for Seldom<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_logged_once_a_minute() {
        let seldom = Seldom::default();
        assert!(seldom.is_due("expired") && seldom.is_due("unknown"));
        tokio::time::advance(EVERY - Duration::from_millis(1)).await;
        assert!(!seldom.is_due("expired"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(seldom.is_due("expired") && !seldom.is_due("expired"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_kinds_than_the_bound_are_remembered() {
        let seldom = Seldom::default();
        for kind in 0..MOST {
            assert!(seldom.is_due(kind));
        }
        assert!(!seldom.is_due(MOST), "there is no place for another");
        tokio::time::advance(EVERY).await;
        assert!(seldom.is_due(MOST) && seldom.is_due(0));
        assert!(lock(&seldom.0).len() <= MOST);
    }
}
