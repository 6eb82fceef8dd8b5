//! What VMs that leave their nodes find on others.
//!
//! Each node offers what it has free, below its watermark. A node that takes no pods offers nothing: one that is cordoned, or whose
//! kubelet is silent or short of memory; nor does one whose VMs' own pods are resized, where a VM of another object stays at
//! what its pod requests. A VM that moves already and has no second place yet has taken its part: another that is told to
//! leave in its turn would wait for a place in vain.

use crate::cluster::Node;
use crate::pods::Pods;
use crate::pods::held::{HeldNode, SeenNode};
use crate::pods::known::Known;
use crate::pods::pools::Mode;
use windlass_protocol::{Resources, VmName};

/// The room of nodes, by name.
#[derive(Debug, Default)]
pub(super) struct Rooms<'a>(Vec<(&'a str, Resources)>);

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// What VMs that leave their nodes find now.
    pub(super) fn rooms(&self) -> Rooms<'_> {
        let nodes = self.nodes.in_order().into_iter();
        let rooms = nodes.filter_map(|(name, held)| Some((&**name, held.room()?)));
        let mut rooms = Rooms(rooms.collect());
        for vm in self.migrations.moving() {
            if let Some((node, size)) = self.waits_for_place(vm) {
                rooms.take(node, size);
            }
        }
        rooms
    }

    /// The one node of a VM that moves, and what it has there; `None`: it has another place, or none.
    fn waits_for_place(&self, vm: &VmName) -> Option<(&str, Resources)> {
        let pods = self.migrations.pods.get(vm).into_iter().flatten();
        let mut placed =
            pods.filter_map(|pod| Some((pod, self.pods.get(pod).and_then(Known::place)?)));
        let (pod, node) = placed.next()?;
        if placed.next().is_some() {
            return None;
        }
        let size = self.books_of(pod)?.with_books(|books| books.reserved_for(pod))?;
        Some((node, size))
    }
}

// === impl HeldNode ===

impl<N: Node> HeldNode<N> {
    /// What VMs of other nodes find here; `None`: nothing is offered.
    fn room(&self) -> Option<Resources> {
        let takes_pods = |seen: &&SeenNode<N>| {
            let is_held = seen.hold.is_cordoned || seen.hold.has_memory_pressure;
            seen.mode != Mode::Resize && !is_held && !seen.is_silent
        };
        let seen = self.there().filter(takes_pods)?;
        let books = seen.held.summary();
        let used = self.taken.others().saturating_add(books.reserved);
        let limit = seen.limit().unwrap_or(seen.allocatable);
        Some(self.open(books).free().min(limit.saturating_sub(used)))
    }
}

// === impl Rooms ===

impl Rooms<'_> {
    /// Takes room for so much on the first node that has it, other than this one; `false`: there is none.
    pub(super) fn take(&mut self, but: &str, size: Resources) -> bool {
        let room = self.0.iter_mut().find(|(name, room)| *name != but && room.covers(size));
        if let Some((_, room)) = room {
            *room = room.saturating_sub(size);
            return true;
        }
        false
    }

    /// Whether a node other than this one has room for so much.
    pub(super) fn have(&self, but: &str, size: Resources) -> bool {
        self.0.iter().any(|(name, room)| *name != but && room.covers(size))
    }
}
