//! The program `windlass-plugin`: permits over HTTP, for the nodes and VMs of a list.
//!
//! ```text
//!   plugin.toml ─► config, lists ─► Plugin ─► directory: a node's books, and where VMs are
//!                     ▲ SIGHUP        │
//!   agents ── POST ──► router ────────┤──► metrics, dump (the reference's names and shapes)
//! ```
//!
//! It decides nothing: the books and the cluster do (`windlass-plugin-core`), and `windlass-plugin`
//! answers for them. Here is the file that says which nodes there are, and which VM is on which.

pub mod args;
pub mod config;
mod directory;
pub mod dump;
mod figures;
mod http;
pub mod keys;
pub mod lists;
pub mod metrics;
pub mod plugin;
pub mod run;
pub mod source;

pub use plugin::Plugin;
