//! What a VM is to the agent, wherever it is declared: in a file of its host, or by an API server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use windlass_protocol::VmInfo;

/// A VM as it is declared. How its hypervisor is reached is said beside it, by a driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// What it should be: one copy, which all share.
    pub info: Arc<VmInfo>,
    /// Where its guest is reached.
    pub guest: Guest,
}

/// Where the guest of a VM is reached, and from where it reaches the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Where its informant listens.
    pub informant: SocketAddr,
    /// How the guest reaches this host. `None`: 10.0.2.2 for a loopback informant, else the local
    /// address that reaches it.
    pub advertise: Option<IpAddr>,
    /// Where its metrics are read, if not at the port that the informant announces.
    pub metrics: Option<SocketAddr>,
}
