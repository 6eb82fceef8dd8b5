//! The commands that look at a host or change it, one module each.

pub mod check;
pub mod completions;
mod configured;
pub mod conformance;
pub mod doctor;
pub mod explain;
pub mod freeze;
pub mod log_level;
pub mod pause;
pub mod top;
pub mod vm;
