//! The books of nodes behind HTTP: an agent asks here for more on behalf of its VM.
//!
//! [`Shared`] is one node: its books behind a lock of their own, for the [`Endpoint`] that answers
//! permits and for the program that tells them which VMs there are and what those have. The endpoint
//! serves one node, or whatever else answers [`Permits`]. It serves no port by itself: a program
//! serves it on one, or asks [`Permits`] in memory.

pub mod http;
pub mod metrics;
pub mod shared;

pub use http::{Endpoint, Permits};
pub use shared::{Proposed, Shared};
