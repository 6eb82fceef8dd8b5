//! What the agent decides: the size of one VM, its session with an informant, and which VMs
//! of a node are managed.
//!
//! Start with [`scaler`]: the loop of a VM as a value. [`session`] is its part that knows
//! which agent id counts; [`metrics_text`] reads what the guest serves; [`roster`] turns
//! changes of VM files into starts and stops.

pub mod event;

pub use event::{Action, Call, CallAnswer, Event, Failure, Order};
