//! Whether this process may answer from its books, and in which epoch.
//!
//! An epoch is the number of a leader: each later leader has a higher one. Whoever promises something looks
//! here right before the promise, and carries the epoch into what is written. A look reads the clock: a process that was
//! stopped for longer than its lease finds out at its first look. What is sent to the API server is an [`Act`] until its outcome
//! is known or given up: a lease is released when none is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use windlass_kit::clock::since_boot;
use windlass_protocol::Moment;

/// Whether this process leads. Clones share it.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Zero before the first epoch. A process has one epoch at most.
    epoch: AtomicU32,
    /// In milliseconds since the boot; zero: it does not lead.
    until: AtomicU64,
    acts: AtomicUsize,
    clock: fn() -> Moment,
}

/// The number of a leader, from 1; a later leader has a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// A request of a leader to the API server, until it is dropped.
#[derive(Debug)]
pub struct Act {
    /// The epoch in which it began.
    pub epoch: Epoch,
    of: Leadership,
}

// === impl Leadership ===

impl Leadership {
    /// A process that leads from its start to its end.
    pub fn sole(epoch: Epoch) -> Self {
        let leadership = Self::by(since_boot);
        leadership.lead(u32::try_from(epoch.0).unwrap_or(u32::MAX), Moment::from_millis(u64::MAX));
        leadership
    }

    /// A process that stands by, until a lease says that it leads.
    pub fn standby() -> Self {
        Self::by(since_boot)
    }

    /// The epoch in which this process may answer at this moment; `None`: another may lead.
    pub fn epoch(&self) -> Option<Epoch> {
        let Inner { epoch, until, clock, .. } = &*self.0;
        let until = until.load(Ordering::SeqCst);
        (clock().millis() < until).then(|| Epoch(epoch.load(Ordering::SeqCst).into()))
    }

    /// Begins a request to the API server; `None`: another may lead.
    pub fn act(&self) -> Option<Act> {
        // Counted before the look: whoever resigns sees it, or is seen.
        self.0.acts.fetch_add(1, Ordering::SeqCst);
        let act = |epoch| Act { epoch, of: self.clone() };
        let begun = self.epoch().map(act);
        if begun.is_none() {
            self.0.acts.fetch_sub(1, Ordering::SeqCst);
        }
        begun
    }

    /// This process may answer in this epoch until then.
    pub(crate) fn lead(&self, epoch: u32, until: Moment) {
        self.0.epoch.store(epoch, Ordering::SeqCst);
        self.0.until.store(until.millis(), Ordering::SeqCst);
    }

    /// This process answers no more.
    pub fn resign(&self) {
        self.0.until.store(0, Ordering::SeqCst);
    }

    /// Whether a request to the API server is under way.
    pub(crate) fn acts(&self) -> bool {
        self.0.acts.load(Ordering::SeqCst) > 0
    }

    fn by(clock: fn() -> Moment) -> Self {
        let (epoch, until) = (AtomicU32::new(0), AtomicU64::new(0));
        Self(Arc::new(Inner { epoch, until, acts: AtomicUsize::new(0), clock }))
    }
}

// === impl Act ===

impl Drop for Act {
    fn drop(&mut self) {
        self.of.0.acts.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static NOW: AtomicU64 = AtomicU64::new(1_000);

    fn clock() -> Moment {
        Moment::from_millis(NOW.load(Ordering::SeqCst))
    }

    #[test]
    fn a_process_that_was_stopped_for_longer_than_its_lease_answers_nothing_afterwards() {
        let leadership = Leadership::by(clock);
        assert_eq!(leadership.epoch(), None, "it stands by");
        leadership.lead(3, Moment::from_millis(11_000));
        NOW.store(10_999, Ordering::SeqCst);
        assert_eq!(leadership.epoch(), Some(Epoch(3)));
        // Nothing runs in a process that is stopped: the clock alone says that the lease is over.
        NOW.store(61_000, Ordering::SeqCst);
        assert_eq!(leadership.epoch(), None);
        assert!(leadership.act().is_none() && !leadership.acts());
    }

    #[test]
    fn a_leader_that_resigns_knows_of_each_request_that_began_before() {
        let leadership = Leadership::sole(Epoch(1));
        let act = leadership.act().unwrap();
        leadership.resign();
        assert!(leadership.act().is_none());
        assert!(leadership.acts());
        drop(act);
        assert!(!leadership.acts());
    }
}
