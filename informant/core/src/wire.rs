//! Between what an informant hears and says, and the bytes that agents write and read.
//!
//! Pure functions, so that a simulation carries the same bytes as a shell does. A shell
//! decides how long it waits for a body, and serves what is for people.
//!
//! What an agent asks is in [`request`], what it is asked in [`call`], and what it reads of
//! `/metrics` in [`figures`].

pub mod call;
pub mod figures;
pub mod request;

pub use call::{from_agent, to_agent};
pub use figures::Figures;
pub use request::{Answer, Misdirected, Request, Unanswered, endpoint};
