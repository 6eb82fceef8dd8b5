//! How a process lives. Knows no VMs.
//!
//! - [`tasks`]: background work that can be stopped, waited for, and noticed when it dies
//! - [`signal`]: SIGTERM stops, a second one exits at once, SIGHUP reloads
//! - [`clock`]: the one place that turns the machine's clocks into a `Moment`
//! - [`backoff`]: how long to wait before trying again
//! - [`config`]: files that people write, from a path to a reader of their keys
//! - [`problem`]: all that is wrong with a file, for people
//! - [`keep`]: files and folders that outlive the process
//! - [`errand`]: work that may block a thread, done apart from whoever wants it
//! - [`notify`]: what systemd is told
//! - [`program`]: how a program ends, listens and says that it is ready
//! - [`telemetry`]: logs, with a filter that can be changed while the process runs
//! - `server` (feature): HTTP with every limit set; `admin` on top of it: health, metrics, log level
//! - `watchdog` (feature `server`): notices a part of the process that hangs
//! - `dump_state` (feature `server`): the state of a process as JSON, off the hot path
//! - `client` (feature): one bounded request over TCP or a unix socket
//!
//! Both features are off by default, so that a crate which needs the clock does not link HTTP.

pub mod backoff;
mod caught;
pub mod clock;
pub mod config;
pub mod errand;
pub mod keep;
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
