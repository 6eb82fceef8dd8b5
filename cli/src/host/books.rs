//! The books of this host: what the agent asks of them, and what it sees.
//!
//! The agent's questions go through the same codec and the same bytes as over a socket, so there is one
//! code path and no port. Called from the tasks of all VMs and never waits: a short lock on who is
//! there, and one on the books. What each of the events does to the books, [`HostVms`] says. Of a VM that
//! is presumed, its own runner finds out whether it is there, by the one connection that its monitor
//! serves.

use bytes::Bytes;
use std::sync::{Mutex, PoisonError};
use tracing::warn;
use windlass_agent::{Asked, Ledger, NodeEvent, Permits};
use windlass_agent_host::NodeBooks;
use windlass_plugin::{Permits as _, Shared};
use windlass_plugin_core::{Books, HostVms, wire};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Note, PluginVersion, Resources, VmName, VmRecord};

/// The books of this host, and which VMs they have.
pub(super) struct HostBooks {
    books: Shared,
    vms: Mutex<HostVms>,
}

// === impl HostBooks ===

impl HostBooks {
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

impl Permits for HostBooks {
    fn ask(&self, body: Bytes) -> Asked<'_> {
        Box::pin(async move {
            Ok(match self.books.answer(wire::read(&body, PluginVersion::SPOKEN)).await {
                Ok(body) => (200, body.into()),
                Err(refusal) => {
                    warn!(%refusal, "permit request refused");
                    (refusal.status(), refusal.to_string().into())
                }
            })
        })
    }

    fn place(&self) -> String {
        "in this process".to_owned()
    }
}

impl NodeBooks for HostBooks {
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

impl Ledger for HostBooks {
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
