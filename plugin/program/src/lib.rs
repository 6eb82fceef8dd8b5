//! The program `windlass-plugin`: permits over HTTP, for the nodes and VMs of a list.
//!
//! ```text
//!   plugin.toml ─► config, lists ─► Plugin ─► directory: a node's books, and where VMs are
//!                     ▲ SIGHUP        │
//!   agents ── POST ──► http ──────────┤──► metrics, dump (the reference's names and shapes)
//! ```
//!
//! It decides nothing: the books do (`windlass-plugin-core`), and `windlass-plugin` answers for
//! those of one node. Here are several nodes, and a file that says which VM is on which.

pub mod args;
pub mod config;
mod directory;
pub mod dump;
mod figures;
pub mod http;
pub mod keys;
pub mod lists;
pub mod metrics;
pub mod plugin;
pub mod run;
pub mod source;

pub use plugin::Plugin;
