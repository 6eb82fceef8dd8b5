//! What the agent decides: the size of one VM, its session with an informant, and which VMs
//! of a node are managed.
//!
//! Start with [`scaler`]: the loop of a VM as a value. Its parts: [`holding`] knows what the
//! VM may have, as a range; [`session`] knows which agent id counts; [`mod@line`] knows when a peer
//! may be spoken to again; [`journal`] keeps the decisions for people. [`metrics_text`] reads
//! what the guest serves.

pub mod event;
pub mod holding;
pub mod journal;
pub mod line;
pub mod metrics_text;
pub mod scaler;
pub mod session;

pub use event::{Action, Call, CallAnswer, Event, Failure, Order};
pub use scaler::{Plan, Scaler, Settings};
