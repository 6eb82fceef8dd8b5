//! A node: its books, and the host that tells them what its hypervisors have.

use crate::laws::{self, Law};
use std::collections::BTreeSet;
use windlass_plugin_core::{Books, Note, VmRecord};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::{Bytes, MilliCpu, Moment, Resources, VmInfo, VmName};

/// One node of a world.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    books: Books,
    entered: BTreeSet<VmName>,
}

// === impl Node ===

impl Node {
    pub(crate) fn new(room: Resources) -> Self {
        Self { books: Books::new(room), entered: BTreeSet::new() }
    }

    /// The process that keeps the books is lost, and with it what it knew.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.books.room());
    }

    pub(crate) fn set_room(&mut self, room: Resources) {
        self.books.set_room(room);
    }

    /// The host saw what a hypervisor has.
    pub(crate) fn witness(&mut self, info: &VmInfo, has: Resources) {
        if self.entered.insert(info.name.clone()) {
            self.books.enter(info.name.clone(), record(info), has);
        } else {
            self.books.witness(&info.name, has);
        }
    }

    pub(crate) fn leave(&mut self, vm: &VmName) {
        self.entered.remove(vm);
        self.books.leave(vm);
    }

    /// A request arrives. Returns the permit, and how law 2 was broken, if it was.
    pub(crate) fn request(
        &mut self,
        now: Moment,
        vm: &VmName,
        wanted: Resources,
    ) -> (Option<Resources>, Option<(Law, String)>) {
        let before = self.status(now);
        let permit = self.books.request(now, vm, wanted).ok().map(|granted| granted.permit);
        let after = self.status(now);
        let broken = laws::books(after.room, before.reserved, after.reserved);
        (permit, broken.map(|what| (Law::BooksWithinTheNode, what)))
    }

    /// What is promised to a VM; `None` before it was heard of, when its maximum counts.
    pub(crate) fn booked(&self, now: Moment, vm: &VmName) -> Option<Resources> {
        let status = self.status(now);
        status.vms.iter().find(|booked| booked.name == *vm).map(|booked| booked.reserved)
    }

    /// Why a VM got less than it asked for, lately.
    pub(crate) fn notes(&self, vm: &VmName) -> Vec<Note> {
        self.books.notes(vm)
    }

    pub(crate) fn status(&self, now: Moment) -> NodeStatus {
        self.books.status(now)
    }
}

fn record(info: &VmInfo) -> VmRecord {
    VmRecord {
        priority: info.priority,
        grain: Resources {
            cpu: MilliCpu::from_cores(1),
            mem: info.memory_slot.max(Bytes::from_mib(2)),
        },
        memory_slot: info.memory_slot,
        min: info.bounds.min,
    }
}
