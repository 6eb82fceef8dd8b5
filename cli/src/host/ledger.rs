//! From what the agent sees to what the books hold.
//!
//! Called from the tasks of all VMs and never waits: a short lock on who is there, and one on the
//! books. What each of the events does to the books, [`HostVms`] says. Of a VM that is presumed, its
//! own runner finds out whether it is there, by the one connection that its monitor serves.

use std::sync::{Mutex, PoisonError};
use windlass_agent::{Ledger, NodeEvent};
use windlass_agent_host::NodeBooks;
use windlass_plugin::Shared;
use windlass_plugin_core::{Books, HostVms};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Note, Resources, VmName, VmRecord};

/// Feeds the books of this host.
pub(super) struct HostLedger {
    books: Shared,
    vms: Mutex<HostVms>,
}

// === impl HostLedger ===

impl HostLedger {
    pub(super) fn new(books: Shared) -> Self {
        Self { books, vms: Mutex::default() }
    }

    fn with_vms<T>(&self, ask: impl FnOnce(&mut HostVms) -> T) -> T {
        ask(&mut self.vms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut HostVms, &mut Books)) {
        self.with_vms(|vms| self.books.with_books(|books| change(vms, books)));
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
        self.change(|vms, books| vms.presume(books, vm, record, ceiling));
    }

    fn presumed(&self) -> Vec<VmName> {
        self.with_vms(|vms| vms.presumed().cloned().collect())
    }

    fn is_presumed(&self, vm: &VmName) -> bool {
        self.with_vms(|vms| vms.is_presumed(vm))
    }

    fn refute(&self, vm: &VmName) {
        self.change(|vms, books| vms.refute(books, vm));
    }
}

impl Ledger for HostLedger {
    fn note(&self, event: NodeEvent) {
        self.change(|vms, books| match event {
            NodeEvent::Entered { info, upper } => vms.entered(books, &info, upper),
            NodeEvent::Updated { info } => vms.updated(books, &info),
            NodeEvent::Witnessed { vm, upper } => vms.witnessed(books, &vm, upper),
            NodeEvent::Counted { vm, upper } => vms.counted(books, &vm, upper),
            NodeEvent::Left { vm } => vms.left(books, &vm),
        });
    }
}
