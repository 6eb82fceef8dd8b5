//! The queue of writes of one kind, behind a lock, and what wakes the task that sends them.
//!
//! Whose turn it is, and when, [`Writes`] says. A request that waits is told when the turn of its VM has ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use windlass_plugin_core::writes::{Heard, Reach, Writes};
use windlass_protocol::{Moment, VmName};

/// The queue. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Proposals(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    writes: Mutex<Writes<oneshot::Sender<()>>>,
    more: Notify,
}

/// Resolves once the write has ended.
pub(crate) type Ended = oneshot::Receiver<()>;

// === impl Proposals ===

impl Default for Proposals {
    fn default() -> Self {
        let writes = Mutex::new(Writes::new(u64::from(std::process::id())));
        Self(Arc::new(Inner { writes, more: Notify::new() }))
    }
}

impl Proposals {
    /// A request waits for the next write of this VM. `None`: too many VMs wait.
    pub(crate) fn add(&self, vm: &VmName) -> Option<Ended> {
        let (tell, ended) = oneshot::channel();
        self.put(vm, Some(tell)).then_some(ended)
    }

    /// A write of this VM is called for, and no request waits for it.
    pub(crate) fn call_for(&self, vm: &VmName) {
        self.put(vm, None);
    }

    /// The VM whose turn it is. No other write of it is under way.
    pub(crate) fn take(&self, now: Moment) -> Option<VmName> {
        self.writes().take(now)
    }

    /// A turn has ended, and what came of it is in the books. Whether the API server answers as before.
    pub(crate) fn end(&self, now: Moment, vm: &VmName, heard: Heard) -> Reach {
        let (requests, reach) = self.writes().end(now, vm, heard);
        tell(requests);
        reach
    }

    /// The VMs that wait for nothing any more, since the API server does not answer.
    pub(crate) fn give_up(&self, given_up: impl Fn(&VmName)) {
        let all = self.writes().give_up();
        for (vm, requests) in all {
            given_up(&vm);
            tell(requests);
        }
    }

    /// Whether no write may be sent at this moment.
    pub(crate) fn rests(&self, now: Moment) -> bool {
        self.writes().rests(now)
    }

    /// When a write may be sent, if none may be sent at this moment.
    pub(crate) fn tries_at(&self, now: Moment) -> Option<Moment> {
        self.writes().tries_at(now)
    }

    /// Resolves once a VM may have come.
    pub(crate) async fn more(&self) {
        self.0.more.notified().await;
    }

    fn put(&self, vm: &VmName, request: Option<oneshot::Sender<()>>) -> bool {
        let is_put = self.writes().call_for(vm, request);
        if is_put {
            self.0.more.notify_one();
        }
        is_put
    }

    fn writes(&self) -> MutexGuard<'_, Writes<oneshot::Sender<()>>> {
        self.0.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(requests: Vec<oneshot::Sender<()>>) {
    for request in requests {
        // It may be gone.
        let _ = request.send(());
    }
}
