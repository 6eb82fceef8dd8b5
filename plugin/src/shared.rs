//! The books, for everybody in the process who needs them.
//!
//! The lock is held for as long as one question takes, and never across an `.await`.

use crate::dump::Dump;
use crate::metrics::Metrics;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kit::clock::Clock;
use windlass_plugin_core::Books;
use windlass_plugin_core::wire::{self, Permitted, Terms};
use windlass_protocol::plugin::RawRequest;
use windlass_protocol::{ComputeUnit, PluginVersion};

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

// === impl Shared ===

impl Shared {
    /// Shares these books; `unit` is told to agents that ask.
    pub fn new(books: Books, unit: ComputeUnit, clock: Clock) -> Self {
        Self::counting(books, unit, clock, Metrics::default())
    }

    /// The same, of one node among several: its requests are counted in `metrics` with those of
    /// the others. The figures of each node are read from its books.
    pub fn counting(books: Books, unit: ComputeUnit, clock: Clock, metrics: Metrics) -> Self {
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
    pub(crate) fn permit(&self, request: RawRequest) -> Result<Permitted, wire::Refusal> {
        let now = self.0.clock.now();
        let unit = *self.0.unit.lock().unwrap_or_else(PoisonError::into_inner);
        let terms = Terms { unit, versions: PluginVersion::SPOKEN };
        self.with_books(|books| wire::grant(books, now, &terms, request))
    }
}
