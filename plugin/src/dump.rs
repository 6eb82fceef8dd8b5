//! The books as JSON, for a person who looks for a fault.

use serde::Serialize;
use std::collections::BTreeMap;
use windlass_plugin_core::{Books, Note};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Moment, Resources};

/// Everything that the books hold. Fields are only added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dump {
    /// When this was true.
    pub at: Moment,
    /// What there is, and who has it.
    pub node: NodeStatus,
    /// By how much the minima of all VMs exceed the room, if they do.
    pub minima_over: Option<Resources>,
    /// When and why a VM got less than it asked for, by the VM's name.
    pub notes: BTreeMap<String, Vec<Note>>,
}

// === impl Dump ===

impl Dump {
    pub(crate) fn of(books: &Books, now: Moment) -> Self {
        let node = books.status(now);
        let notes = node.vms.iter().map(|vm| (vm.name.to_string(), books.notes(&vm.name)));
        let notes = notes.filter(|(_, notes)| !notes.is_empty()).collect();
        Self { at: now, minima_over: books.minima_over(), notes, node }
    }
}
