//! The books of a node behind HTTP: whoever speaks for a VM asks here for more.
//!
//! [`Shared`] holds the books for everybody who needs them: the [`router`] that answers
//! permits, and the program that tells them which VMs there are and what those have. The
//! router serves no port by itself: a program serves it on one, or calls it in memory.

pub mod dump;
pub mod http;
pub mod metrics;
pub mod refusal;
pub mod shared;

pub use http::router;
pub use shared::Shared;
