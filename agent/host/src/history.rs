//! What happened to each VM in the last hour, kept over a restart.
//!
//! The agent knows the decisions and forgets them with its process; they are written down
//! here, beside the books' answers, and read back at the next start. A [`History`] is a plain value: what is
//! new is due to be written, is taken ([`History::take_due`]) and written elsewhere ([`Files`]), and
//! what could not be written is due again. Neither the hour nor what is due grows without bound:
//! if the disk is full, the hour is still known as long as the process lives.

mod files;
mod hour;

pub use files::{Files, Unwritten};
pub use hour::{Batch, History, LENGTH, Line};

#[cfg(test)]
mod tests;
