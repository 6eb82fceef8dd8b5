//! How a goal is computed: samples and policy in, goal and reason out. Pure.
//!
//! The stages, in order: a [`Sample`] says what was measured and what is missing; [`load`] and
//! [`memory`] turn it into counts of compute units; [`goal`] takes the larger, clamps it and
//! says why; [`stabilization`] has a goal that was lowered wait; [`arbitrate`] divides what is left when
//! several want it.

pub mod arbitrate;
pub mod goal;
pub mod load;
pub mod memory;
pub mod sample;
pub mod stabilization;

pub use goal::{Goal, Inputs, Urgency};
pub use sample::{Loads, Sample};
pub use stabilization::{StabilizedGoal, Stabilizer};
