//! Decisions in words: why a VM has the size that it has, and what it waits for.
//!
//! Everything here is a function of what is said in [`windlass_protocol`]: no clock, no I/O,
//! so the same decision always reads the same, on a host, in the world and in a report. Times
//! are RFC 3339 in UTC, CPUs decimal cores, memory has a unit. The words are those of the table in
//! docs/troubleshooting.md; a test of the repository compares.
//!
//! - [`summary`]: the state in a sentence, why not more, why not less, the last changes.
//! - [`page`]: every decision and every answer of the books, in the order of time.
//! - [`sentence`]: one decision, from the signals to what became of it.
//! - [`state`] and [`waiting`]: what a VM waits for at this moment, briefly and with what to do.
//! - [`note`]: what the books answered when there was less than was asked for, and who has the
//!   room.
//! - [`ordered`]: which order was given last, and by which process.
//! - [`returned_by_others`]: what other VMs keep for a while, and when they return it.
//! - [`absent`]: how a VM stands that has no runner.

mod absent;
mod changes;
mod explained;
mod note;
mod ordered;
mod page;
mod parked;
mod returning;
mod room;
mod sentence;
mod summary;
mod waiting;
mod why;
mod words;

pub use absent::absent;
pub use explained::Explained;
pub use note::note;
pub use ordered::{frozen, ordered};
pub use page::page;
pub use parked::{Parked, parked_by_others};
pub use returning::{Returning, returned_by_others};
pub use sentence::sentence;
pub use summary::summary;
pub use waiting::{state, waiting};
pub use words::{ago, amount, fit, instant, short, wrap};

#[cfg(test)]
mod tests;
