//! Computes goals: samples and policy in, goal and reason out. Pure.
//!
//! The stages, in order: a [`Sample`] has the measured figures, some of which may be missing; [`load`] and
//! [`memory`] turn it into counts of compute units; [`goal`] takes the larger count, clamps it and gives the
//! reason; [`stabilization`] delays a lower goal; [`arbitrate`] divides scarce room among claims.

pub mod arbitrate;
pub mod goal;
pub mod load;
pub mod memory;
pub mod sample;
pub mod stabilization;

pub use goal::{Goal, Inputs, Urgency};
pub use sample::{Loads, Sample};
pub use stabilization::{StabilizedGoal, Stabilizer};
