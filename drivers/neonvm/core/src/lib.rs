//! What the driver for NeonVM decides: what an object says of its VM, what a write to it tests, and what an answer means.
//!
//! A write tests the UID, the generation and the pod: it takes effect on what was looked at, or not at all. After a write whose
//! outcome is not known the object is read. Watches, requests and deadlines are the driver's.

mod patch;
mod sizes;
mod writes;

pub use patch::{DEADLINE, WRITTEN_WITHIN, patch};
pub use sizes::{Change, PROMISES, capabilities, change};
pub use writes::{Unwritten, Writes};

use windlass_protocol::vm_object::{Machine, MachinePhase};

/// Whether an object says that this pod runs its VM. A VM is the pod that runs it.
///
/// # Errors
/// Why the VM of that pod is gone.
pub fn runs(machine: &Machine, pod: &str) -> Result<(), String> {
    if machine.phase == MachinePhase::Ended {
        Err("the VM has ended".to_owned())
    } else if machine.pod.as_deref() == Some(pod) {
        Ok(())
    } else {
        let other = machine.pod.as_deref().unwrap_or("no pod");
        Err(format!("{other} runs the VM, and not {pod}"))
    }
}
