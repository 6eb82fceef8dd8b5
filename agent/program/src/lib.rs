//! The program `windlass-agent`: sizes the VMs of one host, with permits of a plugin over HTTP.
//!
//! ```text
//!   agent.toml ─► config ─┐
//!   vms_dir, state_dir ───┴─► windlass_agent_host ── POST ──► windlass-plugin
//!   socket ◄──────────────────┘  │        ▲
//!                               QMP     informants
//! ```
//!
//! It decides nothing. It is `windlass host` without the books: those are the plugin's, and its list
//! says which VMs count.

pub mod args;
mod billing;
pub mod config;
pub mod keys;
pub mod metrics;
pub mod run;
