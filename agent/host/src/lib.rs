//! An agent on one host whose VMs are declared by files: what every program that runs one shares.
//!
//! ```text
//!   VM files ─► disk ─► controller ──► windlass_agent::Agent
//!   state.json ◄─┘        ▲   │             │
//!   history    ◄──────────┼───┘             ▼
//!   socket ─► http ─► commands          status, decisions ─► http ─► socket, view socket
//! ```
//!
//! A program says where things are and who permits what ([`Host`]); [`run()`] starts the parts, and
//! ends them in order. `windlass host` composes a plugin in the same process, whose books it shows
//! ([`NodeBooks`]). `windlass-agent` asks a plugin over HTTP, and has no books to show.
//!
//! - [`api`]: what is said over the socket; [`http`] answers it; [`explain`] puts it into words.
//! - [`basics`]: what the files of such programs say alike.
//! - [`controller`]: the one task that owns VM files, state and history, and obeys [`commands`].
//! - [`state`], [`history`], [`disk`]: what survives a restart.

pub mod api;
pub mod basics;
pub mod checked_attach;
pub mod commands;
pub mod composition;
pub mod controller;
pub mod disk;
pub mod explain;
pub mod figures;
pub mod history;
pub mod http;
pub mod parts;
mod refused;
pub mod run;
mod sender;
pub mod socket;
pub mod state;
mod view_socket;
mod vm_check;

pub use composition::{Composition, NodeBooks, Settings};
pub use parts::{Parts, Setup};
pub use run::{Host, run};
pub use windlass_kit::problem;
