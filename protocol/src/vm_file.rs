//! The checked content of a VM file, in which people describe a VM.
//!
//! [`VM`] is the table of its keys. [`VmFile::with_usual`] reads a file by that table and reports all
//! problems at once. `kit::config` reads the TOML.

mod keys;
mod read;

pub use keys::{MAX_CPU, MAX_MEMORY, MEMORY_SLOT, MIN_CPU, MIN_MEMORY, PRIORITY, VM};
pub use read::{bounds, memory_slot};

use crate::VmInfo;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The content of a VM file.
#[derive(Clone, Debug, PartialEq)]
pub struct VmFile {
    /// The desired state of the VM.
    pub info: VmInfo,
    /// The hypervisor's monitor.
    pub qmp: PathBuf,
    /// The address of the guest's informant.
    pub informant: SocketAddr,
    /// The host's address for the guest. Default: 10.0.2.2 for a loopback informant, else the local address
    /// that reaches the informant.
    pub advertise: Option<IpAddr>,
    /// The address of the guest's metrics, if not at the port that the informant announces.
    pub metrics: Option<SocketAddr>,
    /// Whether the hypervisor may unplug vCPUs.
    pub vcpu_removal: bool,
}
