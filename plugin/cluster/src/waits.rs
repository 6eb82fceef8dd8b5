//! The requests for permits that wait for the kubelets of their VMs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use windlass_protocol::VmName;

/// As many VMs have requests that wait for a kubelet.
const MOST: usize = 10_000;

/// The requests, by VM.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<BTreeMap<VmName, Vec<oneshot::Sender<()>>>>);

// === impl Waits ===

impl Waits {
    /// A request waits; resolves once its wait has ended. `None`: too many VMs wait.
    pub(crate) fn add(&self, vm: &VmName) -> Option<oneshot::Receiver<()>> {
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(vm) {
            return None;
        }
        let (tell, ended) = oneshot::channel();
        let waiting = all.entry(vm.clone()).or_default();
        waiting.retain(|request| !request.is_closed());
        waiting.push(tell);
        Some(ended)
    }

    /// The requests of a VM go on.
    pub(crate) fn end(&self, vm: &VmName) {
        for request in self.all().remove(vm).unwrap_or_default() {
            // It may be gone.
            let _ = request.send(());
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<VmName, Vec<oneshot::Sender<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
