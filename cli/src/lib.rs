//! The command `windlass`: runs Windlass on one host, and lets a person look.
//!
//! [`host`] composes the agent and the plugin in one process and serves a socket; every other
//! command is a client of that socket ([`client`], [`api`]), or of the socket of a `windlass-agent`.
//! With `--server` the plugin of a cluster is asked in place of a host.
//! [`explain`] turns decisions into words and does no I/O, so that the same words can be checked
//! against a scripted world.

pub mod args;
pub mod client;
mod command;
pub mod failure;
pub mod host;
mod options;
pub mod out;
mod server;

pub use windlass_agent_host::{api, explain};
pub use windlass_kit::problem;
