//! The one model of guests, hypervisors, nodes, processes, their network and time.
//!
//! A [`World`] runs the real cores (scaler, informant, books) in one thread under virtual
//! time. It knows the truth: what each hypervisor has, what each guest uses, what was agreed. It
//! loses, delays and repeats what the parts say to each other, stops and restarts them, and
//! notes each [`Violation`] of a law when it happens. Everything follows from one seed.
//!
//! Where to look: [`world`] has time and the people's [`Step`]s; [`guest`] is a VM with its
//! hypervisor, `group` the host's limit on it; [`agent`] and [`informant`] are the shells of the two cores; [`node`] the books,
//! and `promises` what they have promised;
//! [`message`] what they say to each other, as bytes; [`process`] how any of them stops, lingers
//! and ends; `vm` keeps together what belongs to one VM, [`sides`] its two agents; [`laws`] what
//! is checked, and when; `lease` what a lie lets an agent do; `instant` how much may happen before time goes on; [`coverage`] what
//! happened to whom, in which state; [`script`] the histories that property tests draw. [`cluster`] is a world of its own: Kubernetes,
//! with the plugin's core in it.

pub mod agent;
pub mod chance;
pub mod cluster;
pub mod coverage;
mod group;
pub mod guest;
pub mod informant;
mod instant;
pub mod laws;
mod lease;
pub mod message;
pub mod node;
pub mod process;
mod promises;
pub mod queue;
pub mod script;
pub mod sides;
mod vm;
pub mod vms;
pub mod world;

pub use chance::{Chance, Faults};
pub use coverage::Coverage;
pub use guest::GuestSpec;
pub use laws::{Law, Violation};
pub use world::{Setup, Step, World};
