//! The commands that look at a host or change it, one module each.

pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod completions;
mod configured;
pub(crate) mod conformance;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod log_level;
pub(crate) mod pause;
pub(crate) mod top;
pub(crate) mod vm;
