//! A VM as people write it down: the checked content of a VM file.
//!
//! [`VM`] is the table of its keys; [`VmFile::from_nodes`] reads a file by it and reports all
//! problems at once. Reading TOML is `kit::config`'s.

mod keys;
mod read;

pub use keys::{MAX_CPU, MAX_MEMORY, MEMORY_SLOT, MIN_CPU, MIN_MEMORY, PRIORITY, VM};
pub use read::{bounds, memory_slot};

use crate::VmInfo;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Everything that a host is told about one VM.
#[derive(Clone, Debug, PartialEq)]
pub struct VmFile {
    /// What the VM should be.
    pub info: VmInfo,
    /// The hypervisor's monitor.
    pub qmp: PathBuf,
    /// Where the guest's informant listens.
    pub informant: SocketAddr,
    /// How the guest reaches this host. Absent: 10.0.2.2 for a loopback informant, else the local
    /// address that reaches it.
    pub advertise: Option<IpAddr>,
    /// Where the guest's metrics are read, if not at the port that the informant announces.
    pub metrics: Option<SocketAddr>,
    /// Whether vCPUs may be taken out of the hypervisor.
    pub vcpu_removal: bool,
}
