//! What listeners and readers do with any bytes, grouped by listener.
//!
//! A [`Target`] is a function of bytes that panics where a promise does not hold: that nothing
//! from a peer or a file can panic us, and, wherever it is cheap to tell, that what is said comes
//! back as it was said, that a law holds, that a refusal is short and names what it refuses.
//!
//! `tests/replay.rs` plays the inputs that are kept in the tree, under any compiler; `make
//! fuzz` looks for new ones. The bytes of an input are read by `input`: how a
//! target splits them is in its own module, and there is no input that it does not take.

mod agent_calls;
mod informant;
mod informant_answers;
mod input;
mod monitor;
mod operator_texts;
mod pages;
mod permit_answers;
mod plugin;
mod program_files;
mod talk;
pub mod targets;
mod vm;
mod words;

pub use targets::{TARGETS, Target};
