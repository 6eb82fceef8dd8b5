//! Decisions in words: why a VM has the size that it has, and what it waits for.
//!
//! Everything here is a function of what is said in [`windlass_protocol`]: no clock, no I/O,
//! so the same decision always reads the same, on a host, in the world and in a report. Times
//! are RFC 3339 in UTC, CPUs decimal cores, memory has a unit. The words are those of the table in
//! docs/troubleshooting.md; a test of the repository compares.
//!
//! - [`summary`]: the state in a sentence, why not more, why not less, the last changes.
//! - [`page`]: every decision ([`sentence`]) and every answer of the books, in the order of time.
//! - [`state`] and [`waiting`]: what a VM waits for at this moment, briefly and with what to do.

mod changes;
mod page;
mod room;
mod sentence;
mod summary;
mod waiting;
mod why;
mod words;

pub use crate::api::{Explained, Parked, Returning};
pub use page::{note, page};
pub(crate) use room::{parked_by_others, returned_by_others};
pub use sentence::sentence;
pub use summary::{absent, frozen, ordered, summary};
pub use waiting::{state, waiting};
pub use words::{ago, amount, fit, instant, short, wrap};

#[cfg(test)]
mod tests;
