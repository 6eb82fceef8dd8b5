//! What a VM's container has that is not the VM's: the hypervisor's own memory and CPU.
//!
//! People say it in the annotation `windlass.dev/overhead` of a pod that is a VM: `{"cpu":"100m","memory":"256Mi"}`, each of which may
//! be absent. The container's requests and limits are the VM's size and this much on top.

use crate::go_json::{self, keys};
use crate::{BadBody, Bytes, MilliCpu, Resources, limits};

#[derive(Clone, Copy, Default)]
struct Said {
    cpu: Option<MilliCpu>,
    memory: Option<Bytes>,
}

keys!(Said { "cpu": cpu, "memory": memory });

/// Reads the annotation's text. Keys of a later version are ignored.
///
/// # Errors
/// The text is not one JSON object, or a field is invalid.
pub(super) fn read(text: &str) -> Result<Resources, BadBody> {
    let Said { cpu, memory } = go_json::decode_whole(text.as_bytes())?;
    let (cpu, mem) = (cpu.unwrap_or_default(), memory.unwrap_or_default());
    if !cpu.is_zero() && !limits::CPU.has_cpu(cpu) {
        return Err(BadBody::field("cpu", cpu, limits::CPU.allowed()));
    }
    Ok(Resources { cpu, mem })
}
