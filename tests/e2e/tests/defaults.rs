//! Real guests under a real `windlass host` that is told nothing that has a default.
//!
//! What an operator does on an ordinary day, and what goes wrong then: each story says how long
//! people wait for an answer, and that nothing grows that has no load.

#[path = "defaults/gaps.rs"]
mod gaps;
#[path = "defaults/orders.rs"]
mod orders;
#[path = "defaults/stopped.rs"]
mod stopped;
