//! What a runner starts with, what it shows while it runs, and why it ends.

use crate::callback::Calls;
use crate::node::{Shared, Told};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_protocol::status::VmStatus;
use windlass_protocol::{Decision, Resources, VmName};

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
    /// What the VM had when it was last seen, before a restart of this process.
    pub(crate) last: Option<Resources>,
}

/// What people can read of a runner without waiting for it.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// `None` while the VM is not there, or is not managed.
    pub(crate) status: Option<VmStatus>,
    /// The decision under way.
    pub(crate) open: Option<Decision>,
    /// The last size that is known, also of a VM that is only counted.
    pub(crate) upper: Option<Resources>,
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
            last: self.last,
        }
    }
}
