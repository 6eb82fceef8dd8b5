//! What the informant decides: consent, urgency, which agent counts, what is parked.
//!
//! An [`Informant`] is a plain value. It is told what happened ([`Informant::observe`]) and
//! asked what to do ([`Informant::plan`]); what a peer asks over HTTP is a method that answers
//! at once. It never waits, sends or reads a clock.
//!
//! Where to look: the words between core and shell in [`event`]; which agent counts in
//! [`registry`]; whether less memory would do, and whether there is too little, in
//! [`memory`]; vCPUs and memory blocks of the guest in [`machine`]; load over short windows
//! in [`load`]; bytes of requests, calls and figures in [`wire`].

pub mod event;
pub mod informant;
pub mod load;
pub mod machine;
pub mod memory;
pub mod refusal;
pub mod registry;
pub mod wire;

pub use event::{Action, Ask, Change, Event, Failure, MachineSeen, Memory, Plan};
pub use informant::{Informant, Registration, Settings};
pub use load::{Averages, Load, RunQueue};
pub use refusal::Refusal;
