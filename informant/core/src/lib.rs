//! The decisions of the informant: consent, urgency, the current agent, parking of vCPUs.
//!
//! An [`Informant`] is a plain value. The shell reports events ([`Informant::observe`]) and asks for a plan
//! ([`Informant::plan`]); each HTTP request is a method that answers at once. The core never waits, sends or
//! reads a clock.
//!
//! Where to look: events and actions in [`event`]; the current agent in [`registry`]; consent and urgency of
//! memory in [`memory`]; vCPUs and memory blocks of the guest in [`machine`]; load over short windows in
//! [`load`]; bytes of requests, calls and figures in [`wire`].

pub mod event;
pub mod informant;
pub mod load;
pub mod machine;
pub mod memory;
pub mod refusal;
pub mod registry;
pub mod wire;

pub use event::{Action, Ask, Change, Event, Failure, MachineSeen, Memory, Plan};
pub use informant::{Informant, Settings};
pub use load::{Averages, Load};
pub use refusal::Refusal;
