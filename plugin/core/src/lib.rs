//! The books of a node: what is promised to its VMs, and to whom what is left goes.
//!
//! [`Books`] is a plain value that is asked and answers; it has no clock and does no I/O;
//! [`wire`] reads a request's bytes and writes the answer's. The shell in `windlass-plugin`
//! puts it behind HTTP, a program tells it which VMs there are.

pub mod ask;
pub mod books;
mod entry;
pub mod journal;
pub mod record;
pub mod shortage;
mod tally;
pub mod wire;

pub use ask::Ask;
pub use books::{Books, BooksError, Granted};
pub use journal::Note;
pub use record::VmRecord;
pub use shortage::{Axis, Shortage};
