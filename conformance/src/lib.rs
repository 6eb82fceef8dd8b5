//! The conformance kit: plays the peers of a component, and says where it departs from its
//! protocol.
//!
//! ```text
//!   informant::run ── plays agents ────────────────► an informant
//!   plugin::run ───── plays agents ────────────────► a plugin
//!   agent::run ────── plays informant, plugin, QMP ─► an agent
//! ```
//!
//! A case is a name, the rules of `docs/protocol/` that it is about, the versions that it holds
//! in, and a function. What is sent is put together here, byte by byte: none of the codecs that
//! are judged has a part in it. The kit has no runtime and no HTTP library, so that it can send
//! what no library would.

pub mod agent;
pub mod case;
pub mod http;
pub mod ids;
pub mod informant;
pub mod plugin;
pub mod report;
pub mod tamper;
pub mod versions;

pub use case::{Case, Fault, Listed, Verdict};
pub use report::{Outcome, Report};
pub use versions::{Span, Version};
