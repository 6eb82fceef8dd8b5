//! What people and billing can read of a VM without waiting for its runner.
//!
//! It is made when a reader asks for it, from what the runner is doing at that moment.

use crate::errors::Errors;
use std::net::SocketAddr;
use windlass_agent_core::Charge;
use windlass_protocol::status::VmStatus;
use windlass_protocol::{
    AgentId, Capabilities, Decision, InformantVersion, Mode, Moment, Resources, Sequence, VmName,
};
use windlass_scaling::Sample;

/// What billing knows of one VM, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledVm {
    /// The VM.
    pub vm: VmName,
    /// What this agent bills of it.
    pub charge: Charge,
    /// Whether it is acted on; `None` while it is not there, or not managed.
    pub mode: Option<Mode>,
    /// Whether its informant has said nothing for longer than it may.
    pub silent: bool,
}

/// What people read of a VM, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// `None` while the VM is not there, or is not managed.
    pub(crate) status: Option<VmStatus>,
    /// The decision under way.
    pub(crate) open: Option<Decision>,
    /// The last size that is known, also of a VM that is only counted.
    pub(crate) upper: Option<Resources>,
    /// What its hypervisor can do, while the VM is managed.
    pub(crate) can: Option<Capabilities>,
    /// Whether its hypervisor is there.
    pub(crate) present: bool,
    /// Whether it is only looked at and counted.
    pub(crate) counted: bool,
    pub(crate) errors: Errors,
    pub(crate) guest: GuestSnapshot,
}

/// What was last heard of a guest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GuestSnapshot {
    /// When its informant last said anything.
    pub(crate) at: Option<Moment>,
    /// What is spoken with it, or was in the last session.
    pub(crate) version: Option<InformantVersion>,
    /// The session with its informant.
    pub(crate) session: Option<Session>,
    /// At which port its informant said that figures are read.
    pub(crate) metrics_port: Option<u16>,
    /// Its figures.
    pub(crate) sample: Option<Sample>,
}

/// A session, from the first request on, also before that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: AgentId,
    /// The last number that was said in it.
    pub(crate) sequence: Sequence,
    /// Where the informant was told to call back.
    pub(crate) callback: Option<SocketAddr>,
}
