//! The one write: what the spec of a VM asks for.

use crate::sizes::Change;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_protocol::quantity::cpu_text;
use windlass_protocol::timing::LONGEST_ACT;
use windlass_protocol::vm_object::Machine;

/// An answer to a write is waited for this long. Another agent may act after that, so a write does not take effect later: the API
/// server is given half of it.
pub const WRITTEN_WITHIN: Duration = LONGEST_ACT;

/// What the API server is given.
pub const DEADLINE: Duration = Duration::from_secs(1);

const _: () = assert!(2 * DEADLINE.as_millis() <= WRITTEN_WITHIN.as_millis());

/// A JSON patch that changes what the spec of a VM asks for, if uid, generation and pod are still these.
///
/// A spec that somebody else has changed has another generation, and a guest that has restarted another pod. `add` replaces what is there.
pub fn patch(machine: &Machine, change: Change) -> Value {
    let (path, value) = match change {
        Change::Cpu(cpu) => ("/spec/guest/cpus/use", json!(cpu_text(cpu))),
        Change::Slots(count) => ("/spec/guest/memorySlots/use", json!(count)),
    };
    json!([
        {"op": "test", "path": "/metadata/uid", "value": machine.uid},
        {"op": "test", "path": "/metadata/generation", "value": machine.generation},
        {"op": "test", "path": "/status/podName", "value": machine.pod},
        {"op": "add", "path": path, "value": value},
    ])
}
