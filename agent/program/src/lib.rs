//! The program `windlass-agent`: sizes the VMs of one host, or of a node of a cluster, with permits of a plugin over HTTP.
//!
//! ```text
//!   agent.toml ─► config ─┐
//!   vms_dir, state_dir ───┴─► windlass_agent_host ── POST ──► windlass-plugin
//!   socket ◄──────────────────┘  │        ▲
//!                               QMP     informants
//! ```
//!
//! In a cluster [`windlass_agent_cluster`] is in the place of `windlass_agent_host`, and objects of the API server in that of files.
//! It decides nothing. On one host it is `windlass host` without the books: those are the plugin's, and its list
//! says which VMs count.

pub mod args;
mod billing;
pub mod metrics;
pub mod run;
