//! The books, for everybody in the process who needs them.
//!
//! The lock is held for as long as one question takes, and never across an `.await`.

use crate::dump::Dump;
use crate::metrics::Metrics;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kit::clock::Clock;
use windlass_plugin_core::{Books, BooksError, Granted};
use windlass_protocol::plugin::SlotRequest;
use windlass_protocol::{Bytes, ComputeUnit, Resources};

/// The books and what goes with them. Clones share them.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    books: Mutex<Books>,
    unit: Mutex<ComputeUnit>,
    clock: Clock,
    metrics: Metrics,
}

/// A request that was granted, in part or in full.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) asked: Resources,
    pub(crate) granted: Granted,
    pub(crate) unit: Resources,
    /// The VM's step of memory.
    pub(crate) slot: Bytes,
}

// === impl Shared ===

impl Shared {
    /// Shares these books; `unit` is told to agents that ask.
    pub fn new(books: Books, unit: ComputeUnit, clock: Clock) -> Self {
        let metrics = Metrics::default();
        metrics.observe(&books);
        let (books, unit) = (Mutex::new(books), Mutex::new(unit));
        Self(Arc::new(Inner { books, unit, clock, metrics }))
    }

    /// Looks into the books, or changes them.
    pub fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        let mut books = self.0.books.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(&mut books);
        self.0.metrics.observe(&books);
        answer
    }

    /// Agents are told this compute unit from here on.
    pub fn set_unit(&self, unit: ComputeUnit) {
        *self.0.unit.lock().unwrap_or_else(PoisonError::into_inner) = unit;
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The books as a person debugging reads them.
    pub fn dump(&self) -> Dump {
        let now = self.0.clock.now();
        self.with_books(|books| Dump::of(books, now))
    }

    /// Asks the books what a request says.
    pub(crate) fn permit(&self, request: &SlotRequest) -> Result<Answer, BooksError> {
        let now = self.0.clock.now();
        let unit = *self.0.unit.lock().unwrap_or_else(PoisonError::into_inner);
        self.with_books(|books| {
            let record = books.record(&request.vm);
            let slot = record.ok_or_else(|| BooksError::UnknownVm(request.vm.clone()))?.memory_slot;
            let asked = request.resources(slot);
            let granted = books.request(now, &request.vm, asked)?;
            Ok(Answer { asked, granted, unit: unit.into(), slot })
        })
    }
}
