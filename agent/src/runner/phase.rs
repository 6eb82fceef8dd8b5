//! What a runner starts with, what it is told, what it is doing for its VM, and why it ends.

use super::account::Booked;
use super::managed::Managed;
use crate::callback::Calls;
use crate::lock::lock;
use crate::shared::Shared;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_agent_core::{Desired, Event};
use windlass_drivers::any::AnyAttach;
use windlass_protocol::{Moment, VmName};

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

/// How things should be with one VM, and how it is reached: its runner follows that.
pub(crate) struct DesiredState {
    pub(crate) desired: Desired,
    pub(crate) attach: AnyAttach,
    /// Changes whenever `attach` is another.
    pub(crate) reach: u64,
}

/// The phase of a runner, as the agent reads it without waiting for the runner.
#[derive(Clone, Default)]
pub(crate) enum Doing {
    /// It looks for the VM for the first time.
    #[default]
    Seeking,
    /// It found no VM, or one that cannot be reached.
    Waiting,
    /// It manages the VM.
    Managing(Arc<Mutex<Managed>>),
    /// It looks at the VM and counts it.
    Counting,
}

/// What a runner is doing for its VM.
pub(super) enum Phase {
    /// Not attached: there is no VM, or it cannot be reached.
    Absent,
    Managed(Arc<Mutex<Managed>>),
    Counted {
        look_at: Moment,
    },
}

// === impl Phase ===

impl Phase {
    /// The VM, while it is managed.
    pub(super) fn managed(&self) -> Option<MutexGuard<'_, Managed>> {
        match self {
            Self::Managed(managed) => Some(lock(managed)),
            Self::Absent | Self::Counted { .. } => None,
        }
    }

    /// The next answer. Can be dropped and called again at any time.
    pub(super) async fn next(&self) -> Event {
        poll_fn(|cx| self.managed().map_or(Poll::Pending, |mut managed| managed.in_flight.poll(cx)))
            .await
    }

    /// The phase as the agent reads it. `sought`: the runner has looked for the VM.
    pub(super) fn doing(&self, sought: bool) -> Doing {
        match self {
            Self::Absent if sought => Doing::Waiting,
            Self::Absent => Doing::Seeking,
            Self::Managed(managed) => Doing::Managing(managed.clone()),
            Self::Counted { .. } => Doing::Counting,
        }
    }
}
