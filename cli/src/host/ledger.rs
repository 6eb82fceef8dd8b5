//! From what the agent sees to what the books hold.
//!
//! Called from the tasks of all VMs and never waits: a short lock on the books, and a map of
//! who is there. A VM that may be there and was not looked for yet counts with the most that it
//! may have ([`NodeBooks::presume`]), so that a restart promises its room to no other; its own
//! runner finds out, by the one connection that its monitor serves.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_agent::{Ledger, NodeEvent};
use windlass_agent_host::NodeBooks;
use windlass_plugin::Shared;
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Note, Resources, VmName, VmRecord};

/// Feeds the books of this host.
pub(super) struct HostLedger {
    books: Shared,
    present: Mutex<Present>,
}

#[derive(Default)]
struct Present {
    /// VMs that the agent has seen.
    seen: BTreeSet<VmName>,
    /// VMs that are in the books without having been seen.
    presumed: BTreeSet<VmName>,
}

// === impl HostLedger ===

impl HostLedger {
    pub(super) fn new(books: Shared) -> Self {
        Self { books, present: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeBooks for HostLedger {
    fn room(&self) -> Resources {
        self.books.with_books(|books| books.room())
    }

    fn status(&self, now: Moment) -> NodeStatus {
        self.books.with_books(|books| books.status(now))
    }

    fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.books.with_books(|books| books.notes(vm))
    }

    fn presume(&self, vm: &VmName, record: VmRecord, ceiling: Resources) {
        let mut present = self.lock();
        if !present.seen.contains(vm) {
            present.presumed.insert(vm.clone());
            self.books.with_books(|books| books.enter(vm.clone(), record, ceiling));
        }
    }

    fn presumed(&self) -> Vec<VmName> {
        self.lock().presumed.iter().cloned().collect()
    }

    fn is_presumed(&self, vm: &VmName) -> bool {
        self.lock().presumed.contains(vm)
    }

    fn refute(&self, vm: &VmName) {
        let mut present = self.lock();
        if present.presumed.remove(vm) {
            self.books.with_books(|books| books.leave(vm));
        }
    }
}

impl Ledger for HostLedger {
    fn note(&self, event: NodeEvent) {
        let mut present = self.lock();
        match event {
            NodeEvent::Entered { info, upper } => {
                present.presumed.remove(&info.name);
                present.seen.insert(info.name.clone());
                let ceiling = upper.unwrap_or(info.bounds.max);
                self.books.with_books(|books| {
                    books.enter(info.name.clone(), VmRecord::of(&info), ceiling);
                    if let Some(upper) = upper {
                        // What was presumed before it was seen goes.
                        books.witness(&info.name, upper);
                    }
                });
            }
            NodeEvent::Updated { info } => {
                self.books.with_books(|books| books.update(&info.name, VmRecord::of(&info)));
            }
            NodeEvent::Witnessed { vm, upper } => {
                self.books.with_books(|books| books.witness(&vm, upper));
            }
            NodeEvent::Counted { vm, upper } => {
                present.presumed.remove(&vm);
                present.seen.insert(vm.clone());
                self.books.with_books(|books| {
                    let record = books.record(&vm).copied().unwrap_or_default();
                    books.enter(vm.clone(), record, Resources::ZERO);
                    books.count(&vm, upper);
                });
            }
            NodeEvent::Left { vm } => {
                present.presumed.remove(&vm);
                present.seen.remove(&vm);
                self.books.with_books(|books| books.leave(&vm));
            }
        }
    }
}
