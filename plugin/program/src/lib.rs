//! The program `windlass-plugin`: permits over HTTP, for the nodes and VMs of a list.
//!
//! ```text
//!   plugin.toml ─► source ─►         Plugin ─► directory: a node's books, and where VMs are
//!                     ▲ SIGHUP        │
//!   agents ── POST ──► endpoint ──────┤──► metrics, dump (the reference's names and shapes)
//! ```
//!
//! It decides nothing: the books and the cluster do (`windlass-plugin-core`), and `windlass-plugin`
//! answers for them. Here is the file that says which nodes there are, and which VM is on which.

pub mod args;
mod cluster;
mod directory;
pub mod dump;
mod figures;
pub mod metrics;
mod plugin;
mod ports;
pub mod run;
mod served;
mod source;

pub use plugin::Plugin;
