//! The program `windlass-agent`: sizes the VMs of one host, with permits of a plugin over HTTP.
//!
//! ```text
//!   agent.toml ─► config ─┐
//!   vms_dir ─► keeper ────┴─► windlass_agent::Agent ── POST ──► windlass-plugin
//!              state_dir        │        ▲
//!                             QMP     informants
//! ```
//!
//! It decides nothing. What `windlass host` does besides (books, orders of people, history) is not
//! here: the books are the plugin's, and its list says which VMs count.

pub mod args;
mod billing;
pub mod config;
pub mod keeper;
pub mod keys;
pub mod metrics;
pub mod run;
pub mod state;
