//! The informant: one small static program inside each guest.
//!
//! It reports load, agrees or refuses to give memory up, asks for more at once, and brings
//! added vCPUs and memory online. Until an agent registers it changes nothing, and it never
//! freezes the workload or sets limits on it.
//!
//! What it decides is in `windlass-informant-core`; here is how it acts: [`run`] wires the
//! parts, [`runner`] carries out the plan, [`http`] answers, [`call`] calls agents, [`proc`]
//! and [`hotplug`] read and change the machine, and [`memory_cotenant`] is for who else has a say.

pub mod call;
pub mod clock;
pub mod config;
pub mod hotplug;
pub mod http;
pub mod kernel_events;
pub mod log;
pub mod memory_cotenant;
pub mod metrics;
pub mod proc;
pub mod run;
pub mod runner;
pub mod sampler;
pub mod shared;
pub mod sysfs_worker;
pub mod tree;
