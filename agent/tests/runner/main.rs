//! The agent against peers that work, stall, lie and vanish.
//!
//! Time is paused: waits take none, and nothing depends on how fast the machine is. Guests
//! speak over real loopback sockets, hypervisors are `drivers-fake`, the plugin is called in
//! memory. A test waits for a condition, or lets a stated time pass and then looks.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bodies;
mod calls;
mod charges;
mod ends;
mod faults;
mod follows;
mod guest;
mod keys;
mod known;
mod monitors;
mod node;
mod orders;
mod periods;
mod plugin;
mod said;
