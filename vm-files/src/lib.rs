//! VMs that are declared by files of their host.
//!
//! [`text`] reads one file, [`folder`] says which files are in force, [`watch`] when to look again. A file becomes what the
//! agent knows: [`vm`]. The agent itself knows no file: a VM may be declared elsewhere.

pub mod folder;
pub mod text;
pub mod watch;

use windlass_agent_core::{Guest, Vm};
use windlass_protocol::vm_file::VmFile;

/// The VM that a file declares.
pub fn vm(file: &VmFile) -> Vm {
    let VmFile { info, informant, advertise, metrics, qmp: _, vcpu_removal: _ } = file;
    let guest = Guest { informant: *informant, advertise: *advertise, metrics: *metrics };
    Vm { info: info.clone().into(), guest }
}
