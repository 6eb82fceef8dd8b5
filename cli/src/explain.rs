//! Decisions in words: why a VM grew, why it got less than it wanted, what it waits for.
//!
//! Everything here is a function of what is said in [`windlass_protocol`]: no clock, no I/O,
//! so the same decision always reads the same, on a host, in the world and in a report. Times
//! are RFC 3339 in UTC, CPUs decimal cores, memory has a unit.
//!
//! - [`sentence`]: one decision, from the signals to what became of it.
//! - [`waiting`]: why a VM does not move at this moment.
//! - [`note`]: what the books answered when there was less than was asked for, and who has the
//!   room.
//! - [`absent`]: how a VM stands that nobody is attached to.
//! - [`page`]: all of it for one VM, in the order of time.

mod absent;
mod note;
mod page;
mod sentence;
mod waiting;
mod words;

pub use absent::absent;
pub use note::note;
pub use page::{Explained, page};
pub use sentence::sentence;
pub use waiting::{brief, waiting};
pub use windlass_plugin_core::Note;
pub use words::{instant, short};

#[cfg(test)]
mod tests;
