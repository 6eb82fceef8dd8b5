//! What the agent does: for each VM of a node it reads metrics, asks for permits, talks to the
//! informant, and has the hypervisor resize.
//!
//! ```text
//!                    ┌────────────────── one per VM ──────────────────┐
//!   host ─ manage ─► │ runner ── owns ──► agent_core::Scaler          │
//!   (VMs, orders)    │   │  plan ▼ ▲ events                           │
//!        ▲           │   ├─► hypervisor (drivers::Attach)  hypervisor │
//!        │           │   ├─► plugin     (Permits)          books      │
//!        │           │   ├─► informant, scrape             guest      │
//!     status,        │   └─◄ callback   (its own port)     guest      │
//!     decisions,     └────────────────────────────────────────────────┘
//!     Ledger
//! ```
//!
//! It decides nothing: the decisions and all their timing are in `windlass-agent-core`. A
//! `runner` carries out one plan at a time, with a deadline on each request, and reports
//! what came of it. One VM that vanishes, hangs, restarts or lies is that VM's problem only.

mod address;
mod callback;
pub mod config;
mod dump;
mod errors;
mod history;
mod host_memory;
mod informant;
mod ledger;
mod lock;
pub mod metrics;
mod node;
mod plugin;
mod ports;
mod remote;
mod runner;
mod scrape;
mod shared;
mod view;

pub use config::{Config, Silence};
pub use history::Explained;
pub use ledger::{Ledger, NodeEvent, NullLedger};
pub use metrics::Metrics;
pub use node::{Agent, Known, UnknownVm};
pub use plugin::{Asked, Permits};
pub use remote::{NoTrust, PluginAt, Remote};
pub use view::BilledVm;
pub use windlass_agent_core::{Charge, Guest, Lifecycle, Periods, Times, Vm};
