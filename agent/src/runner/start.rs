//! What a runner starts with, and why it ends.

use super::account::Booked;
use super::phase::Doing;
use crate::callback::Calls;
use crate::desired_state::DesiredState;
use crate::shared::Shared;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_protocol::VmName;

/// What a runner starts with.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) vm: VmName,
    pub(crate) told: watch::Receiver<DesiredState>,
    pub(crate) calls: Calls,
    /// The port at which its informant calls back; `None` while none is to be had.
    pub(crate) port: watch::Receiver<Option<u16>>,
    pub(crate) doing: Arc<Mutex<Doing>>,
    pub(crate) stop: CancellationToken,
    pub(crate) booked: Arc<Mutex<Booked>>,
}

/// Why a runner ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process stops.
    Stopped,
    /// The VM is gone, and declared no more.
    Removed,
}
