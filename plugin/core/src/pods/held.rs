//! One node: what it can allocate, what other pods take of it, and the books of its VMs.
//!
//! A node's room for VMs is what it can allocate without the requests of all other pods that count there,
//! and never below zero. Pods of a node that is not known are counted, and enter its books when it is seen.

use crate::books::Books;
use crate::cluster::Node;
use crate::pods::known::Share;
use crate::pods::why_not::Short;
use crate::summary::Summary;
use crate::tally::Sum;
use std::collections::BTreeSet;
use windlass_protocol::{Resources, VmName, node};

/// A node and the pods that take room of it.
#[derive(Clone, Debug)]
pub(crate) struct HeldNode<N> {
    /// Once it was seen.
    pub(crate) seen: Option<SeenNode<N>>,
    /// The requests of all pods that are no VMs.
    others: Sum,
    pub(crate) pods: BTreeSet<VmName>,
}

/// A node that was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenNode<N> {
    /// Its object is gone, and pods of it are left: a node of this name that comes finds its books.
    pub(crate) is_gone: bool,
    pub(crate) revision: String,
    pub(crate) allocatable: Resources,
    pub(crate) held: N,
}

// === impl HeldNode ===

impl<N> Default for HeldNode<N> {
    fn default() -> Self {
        Self { seen: None, others: Sum::default(), pods: BTreeSet::new() }
    }
}

impl<N: Node> HeldNode<N> {
    /// The requests of all pods that are no VMs.
    pub(crate) fn others(&self) -> Resources {
        self.others.resources()
    }

    /// The node, if it is there.
    pub(crate) fn there(&self) -> Option<&SeenNode<N>> {
        self.seen.as_ref().filter(|seen| !seen.is_gone)
    }

    /// The node's object is gone. What its pods were granted stays in its books: they may run on.
    pub(crate) fn leave(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.is_gone = true;
        }
    }

    /// The node was seen; the shares of its pods enter the books that `hold` makes if it was not known.
    pub(crate) fn see<'a>(
        &mut self,
        node: &node::Node,
        hold: impl FnOnce() -> N,
        shares: impl Iterator<Item = (&'a VmName, Share)>,
    ) -> bool {
        let is_new = self.seen.is_none();
        let others = self.others();
        let allocatable = node.allocatable;
        let seen = self.seen.get_or_insert_with(|| SeenNode {
            is_gone: false,
            revision: String::new(),
            allocatable,
            held: hold(),
        });
        (seen.revision, seen.allocatable) = (node.revision.clone(), allocatable);
        seen.is_gone = false;
        seen.change(others, |books| {
            for (name, share) in shares.filter(|_| is_new) {
                enter(books, name, share);
            }
        })
    }

    /// A pod takes another share of this node, or came or left. Whether room came free.
    pub(crate) fn change(
        &mut self,
        name: &VmName,
        before: Option<Share>,
        after: Option<Share>,
        is_same_pod: bool,
    ) -> bool {
        self.count(name, before, after);
        let others = self.others();
        let Some(seen) = &self.seen else { return false };
        seen.change(others, |books| {
            let is_vm = |share| matches!(share, Some(Share::Vm { .. }));
            if is_vm(before) && !(is_vm(after) && is_same_pod) {
                books.leave(name);
            }
            if let Some(share) = after {
                enter(books, name, share);
            }
        })
    }

    /// Takes a new pod's share of what is free, or says on which axis it is short. `None`: the node is not
    /// known.
    pub(crate) fn reserve(
        &mut self,
        name: &VmName,
        share: Share,
        asked: Resources,
    ) -> Option<Result<(), Short>> {
        let seen = self.there()?;
        let mut others = self.others;
        others.change(Resources::ZERO, share.other());
        let room = seen.allocatable.saturating_sub(others.resources());
        let reserved =
            seen.held.with_books(|books| match Short::of(asked, books.free(), books.room()) {
                Some(short) => Err(short),
                None => {
                    books.set_room(room);
                    enter(books, name, share);
                    Ok(())
                }
            });
        if reserved.is_ok() {
            self.count(name, None, Some(share));
        }
        Some(reserved)
    }

    /// What the books would come to without these pods; `None`: the node is not known.
    pub(crate) fn without<'a>(
        &self,
        pods: impl Iterator<Item = (&'a VmName, Share)>,
    ) -> Option<Summary> {
        let seen = self.there()?;
        let mut others = self.others;
        seen.held.with_books(|books| {
            let mut reserved = Sum::default();
            reserved.change(Resources::ZERO, books.reserved());
            for (name, share) in pods {
                others.change(share.other(), Resources::ZERO);
                reserved.change(books.reserved_for(name).unwrap_or_default(), Resources::ZERO);
            }
            let room = seen.allocatable.saturating_sub(others.resources());
            Some(Summary { room, reserved: reserved.resources() })
        })
    }

    /// By how much other pods, and VMs for which this much is reserved, exceed what the node can allocate.
    pub(crate) fn over(&self, reserved: Resources) -> Resources {
        let mut all = self.others;
        all.change(Resources::ZERO, reserved);
        let allocatable = self.seen.as_ref().map(|seen| seen.allocatable).unwrap_or_default();
        all.resources().saturating_sub(allocatable)
    }

    /// Counts what is no matter of the books.
    fn count(&mut self, name: &VmName, before: Option<Share>, after: Option<Share>) {
        let other = |share: Option<Share>| share.map(|share| share.other()).unwrap_or_default();
        self.others.change(other(before), other(after));
        match after {
            Some(_) if before.is_none() => drop(self.pods.insert(name.clone())),
            Some(_) => {}
            None => drop(self.pods.remove(name)),
        }
    }
}

// === impl SeenNode ===

impl<N: Node> SeenNode<N> {
    /// Changes the books in one step with the room that is left by other pods. Whether room came free.
    fn change(&self, others: Resources, change: impl FnOnce(&mut Books)) -> bool {
        self.held.with_books(|books| {
            let before = books.free();
            books.set_room(self.allocatable.saturating_sub(others));
            change(books);
            !before.covers(books.free())
        })
    }
}

/// A VM's share is an entry in the books; another's is no part of them.
fn enter(books: &mut Books, name: &VmName, share: Share) {
    if let Share::Vm { record, requests, ceiling } = share {
        books.enter_pod(name.clone(), record, requests, ceiling);
    }
}
