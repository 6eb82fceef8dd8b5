//! The VMs whose ceilings are to be recorded, in the order in which they came.
//!
//! What is recorded of a VM is decided when its turn comes, so requests of one VM wait for one write; those that
//! come while it is under way wait for the next. A request that is dropped leaves its VM in the queue: what the books
//! reserved for it is settled either way. Bounded: beyond the bound nothing waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use windlass_protocol::VmName;

/// As many VMs wait.
const MOST: usize = 10_000;

/// The queue. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposals(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: Mutex<Queue>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<VmName>,
    /// The requests that wait, by VM; each VM is in the order once.
    waiting: BTreeMap<VmName, Vec<oneshot::Sender<()>>>,
    under_way: BTreeSet<VmName>,
}

/// The write of one VM, until it is [ended](Proposals::end).
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) vm: VmName,
    requests: Vec<oneshot::Sender<()>>,
}

/// Resolves once the write has ended.
pub(crate) type Ended = oneshot::Receiver<()>;

// === impl Proposals ===

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
    pub(crate) fn take(&self) -> Option<Turn> {
        let Queue { order, waiting, under_way } = &mut *self.queue();
        let next = order.iter().position(|vm| !under_way.contains(vm))?;
        let vm = order.remove(next)?;
        let requests = waiting.remove(&vm).unwrap_or_default();
        under_way.insert(vm.clone());
        Some(Turn { vm, requests })
    }

    /// A write has ended, and what came of it is in the books.
    pub(crate) fn end(&self, turn: Turn) {
        self.queue().under_way.remove(&turn.vm);
        for request in turn.requests {
            // It may be gone.
            let _ = request.send(());
        }
    }

    /// Resolves once a VM may have come.
    pub(crate) async fn more(&self) {
        self.0.more.notified().await;
    }

    fn put(&self, vm: &VmName, request: Option<oneshot::Sender<()>>) -> bool {
        let Queue { order, waiting, .. } = &mut *self.queue();
        if !waiting.contains_key(vm) {
            if order.len() >= MOST {
                return false;
            }
            order.push_back(vm.clone());
        }
        waiting.entry(vm.clone()).or_default().extend(request);
        self.0.more.notify_one();
        true
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_vm_wait_for_one_write_and_later_ones_for_the_next() {
        let (proposals, a, b) = (Proposals::default(), VmName::on_host("a"), VmName::on_host("b"));
        let mut first = [(); 2].map(|()| proposals.add(&a).expect("there is room"));
        let turn = proposals.take().expect("a waits");
        let mut later = proposals.add(&a).expect("there is room");
        assert!(proposals.take().is_none(), "a write of it is under way");
        proposals.call_for(&b);
        assert_eq!(proposals.take().expect("b is called for").vm, b);
        proposals.end(turn);
        assert!(first.iter_mut().all(|ended| ended.try_recv().is_ok()));
        assert!(later.try_recv().is_err());
        let turn = proposals.take().expect("a waits again");
        assert_eq!(turn.vm, a);
        proposals.end(turn);
        assert!(later.try_recv().is_ok() && proposals.take().is_none());
    }

    #[test]
    fn beyond_the_bound_nothing_waits() {
        let proposals = Proposals::default();
        let vm = |nth: usize| VmName::on_host(nth.to_string());
        assert!((0..MOST).all(|nth| proposals.add(&vm(nth)).is_some()));
        assert!(proposals.add(&vm(MOST)).is_none());
        assert!(proposals.add(&vm(0)).is_some(), "it waits already");
    }
}
