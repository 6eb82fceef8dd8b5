//! What every process needs: tasks, signals, configuration, logs, HTTP. Knows no VMs.
//!
//! The features `server`, `tls` and `client` are off by default, so that a crate that only needs the clock does
//! not link HTTP.

pub mod addresses;
pub mod atomic_file;
pub mod backoff;
pub mod blocking;
mod catch_panic;
pub mod clock;
pub mod config;
pub mod notify;
pub mod problem;
pub mod program;
pub mod seldom;
pub mod signal;
pub mod tasks;
pub mod telemetry;

#[cfg(feature = "server")]
pub mod admin;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod dump_state;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod stops;
#[cfg(feature = "server")]
pub mod watchdog;
