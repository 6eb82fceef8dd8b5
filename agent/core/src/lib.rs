//! What the agent decides: the size of one VM, and its session with an informant.
//!
//! Start with [`scaler`]: the loop of a VM as a value. Its parts: [`holding`] knows what the
//! VM may have, as a range; [`session`] knows which agent id counts; [`mod@line`] knows when a peer
//! may be spoken to, [`trials`] whether a resize had an effect, and [`rest`] how long to leave
//! either alone; [`settings`] says how often what is asked; `spoken` knows in which version the plugin is spoken to; [`journal`] keeps the decisions for people. [`metrics_text`] reads
//! what the guest serves, and [`wire`] turns what is said and heard into bytes and back.

mod charge;
pub mod event;
pub mod holding;
pub mod journal;
pub mod line;
pub mod metrics_text;
mod plan;
pub mod rest;
pub mod scaler;
pub mod session;
pub mod settings;
mod spoken;
pub mod trials;
pub mod wire;

pub use charge::Charge;
pub use event::{Action, Asking, Call, CallAnswer, Event, Failure, NotNow, Order};
pub use plan::Plan;
pub use scaler::Scaler;
pub use settings::{Periods, Settings};
pub use trials::{Judged, Tally};
