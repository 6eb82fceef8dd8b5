//! Whether this process may answer from its books, and in which epoch.
//!
//! An epoch is the number of a leader: each later leader has a higher one. Whoever promises something looks
//! here right before the promise, and carries the epoch into what is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether this process leads. Clones share it.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<AtomicU64>);

/// The number of a leader, from 1; a later leader has a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

// === impl Leadership ===

impl Leadership {
    /// A process that leads from its start to its end.
    pub fn sole(epoch: Epoch) -> Self {
        Self(Arc::new(AtomicU64::new(epoch.0)))
    }

    /// The epoch in which this process may answer at this moment; `None`: another may lead.
    pub fn epoch(&self) -> Option<Epoch> {
        let epoch = self.0.load(Ordering::Acquire);
        (epoch > 0).then_some(Epoch(epoch))
    }
}
