//! The state of an agent as JSON, for a person who looks for a fault.
//!
//! It is read from what runners publish, so a VM that hangs does not keep it waiting.

use crate::node::Standing;
use crate::runner::View;
use serde_json::{Value, json};
use windlass_protocol::VmName;
use windlass_protocol::vm_file::VmFile;

/// All VMs.
pub(crate) fn agent(frozen: bool, vms: Vec<Value>) -> Value {
    json!({ "frozen": frozen, "vms": vms })
}

/// One VM.
pub(crate) fn vm(
    name: &VmName,
    standing: Standing,
    port: Option<u16>,
    file: Option<&VmFile>,
    view: &View,
) -> Value {
    json!({
        "name": name,
        "standing": standing,
        "callback_port": port,
        "monitor": file.map(|file| &file.qmp),
        "informant": file.map(|file| file.informant),
        "told": file.map(|file| &file.info),
        "upper": view.upper,
        "status": view.status,
        "open": view.open,
    })
}
