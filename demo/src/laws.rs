//! The laws, checked from outside on the recording of a run.
//!
//! A figure is a [`Reading`](super::recording::Reading): true at some moment of its window.
//! So nothing is claimed that readings taken one after another could not both show: a permit
//! is taken as the largest that was seen just before and just after a size, and a VM is
//! taken to hold at least the smaller of two successive sizes. What a VM *has* is its vCPUs
//! online as the load program in the guest counts them, and boot memory plus the larger of
//! asked and present memory as the lab's own monitor gives them. A check that could compare
//! nothing, or that missed more than it compared, has failed: nothing seen is not nothing
//! wrong.

mod evidence;
mod goal;
mod memory;
mod node;
mod permit;
mod reasons;
mod verdict;
mod window;

pub(crate) use verdict::{Check, Verdict};
pub(crate) use window::NEAR;

use super::recording::Recording;

/// Checks everything of a run of [`SCRIPT`](super::script::SCRIPT).
pub(crate) fn check_run(recording: &Recording) -> Vec<Verdict> {
    let mut verdicts = check(recording);
    verdicts.push(reasons::check(recording));
    verdicts
}

/// Checks what must hold of any recording.
pub(crate) fn check(recording: &Recording) -> Vec<Verdict> {
    vec![
        permit::check(recording),
        node::check(recording),
        memory::consent(recording),
        memory::in_use(recording),
        goal::check(recording),
        evidence::check(recording),
    ]
}

#[cfg(test)]
mod tests;
