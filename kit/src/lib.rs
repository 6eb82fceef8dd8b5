//! What every process needs: tasks, signals, configuration, logs, HTTP. Knows no VMs.
//!
//! - [`tasks`]: background tasks, their shutdown and their failures
//! - [`signal`]: the first SIGTERM stops, the second exits at once, SIGHUP reloads
//! - [`clock`]: turns the machine's clocks into `Moment`s
//! - [`backoff`]: the wait before the next attempt
//! - [`config`]: reads files that people write
//! - [`problem`]: all problems of a file, for people
//! - [`atomic_file`]: files that outlive the process, and locks of folders
//! - [`blocking`]: blocking work on threads of its own
//! - [`notify`]: reports to systemd
//! - [`program`]: exit codes, listening, standard output
//! - [`telemetry`]: logs, with a filter that can change at run time
//! - `server` (feature): HTTP with all limits; `admin` on top of it: health, metrics, log level
//! - `watchdog` (feature `server`): detects a part of the process that hangs
//! - `dump_state` (feature `server`): the state of a process as JSON
//! - `client` (feature): bounded requests over TCP or a unix socket
//!
//! Both features are off by default, so that a crate that only needs the clock does not link HTTP.

pub mod atomic_file;
pub mod backoff;
pub mod blocking;
mod catch_panic;
pub mod clock;
pub mod config;
pub mod notify;
pub mod problem;
pub mod program;
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
pub mod watchdog;
