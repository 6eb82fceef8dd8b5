//! What the agent does to bill: it looks at what VMs have, writes that down, and sends events until
//! the receiver has answered.
//!
//! ```text
//!   sizes ── every few seconds ──► log ──── meter (windlass-agent-billing-core)
//!   of VMs                           │  └─── journal: on disk before anything follows from it
//!                                    ▼ batch                    ▲ delivered
//!                                  sender ── POST …/usage_events ──► receiver: answers 200
//! ```
//!
//! It decides nothing: which time counts, which windows end and how events are numbered is decided in
//! the core. A request that may have arrived is sent again with the same keys. One billing per
//! folder: a second process is refused.

mod billing;
pub mod config;
mod journal;
mod metrics;
mod receiver;
mod sender;
mod usage_log;

pub use billing::{Billing, Sizes};
pub use config::Config;
pub use journal::OpenError;
pub use metrics::{Found, Metrics};
pub use receiver::Receiver;
pub use windlass_agent_billing_core::{Allocation, Endpoint, NoEndpoint, Source};
