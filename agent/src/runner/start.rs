//! What a runner starts with, and why it ends.

use super::account::Booked;
use crate::callback::Calls;
use crate::shared::Shared;
use crate::told::Told;
use crate::view::View;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_protocol::VmName;

/// What a runner starts with.
pub(crate) struct Start<A> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) vm: VmName,
    pub(crate) told: watch::Receiver<Told<A>>,
    pub(crate) calls: Calls,
    /// The port at which its informant calls back; `None` while none is to be had.
    pub(crate) port: watch::Receiver<Option<u16>>,
    pub(crate) view: Arc<Mutex<View>>,
    pub(crate) stop: CancellationToken,
    pub(crate) booked: Arc<Mutex<Booked>>,
}

/// Why a runner ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process stops.
    Stopped,
    /// The VM is gone and its file too.
    Removed,
}

// === impl Start ===

impl<A> Clone for Start<A> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            vm: self.vm.clone(),
            told: self.told.clone(),
            calls: self.calls.clone(),
            port: self.port.clone(),
            view: self.view.clone(),
            stop: self.stop.clone(),
            booked: self.booked.clone(),
        }
    }
}
