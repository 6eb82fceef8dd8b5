//! One node: what it can allocate, what its pods take of it, and the books of its VMs.
//!
//! The books' room follows from both ([`Taken::room`]), in one step with each change of either. Pods of a node
//! that is not known are counted, and enter its books when it is seen.

use crate::books::Books;
use crate::cluster::Node;
use crate::hold::Hold;
use crate::pods::pools::Mode;
use crate::pods::share::{Own, Share};
use crate::pods::taken::Taken;
use crate::pods::why_not::Short;
use crate::summary::Summary;
use crate::tally::Sum;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_protocol::{Resources, VmName, node};

/// As many earlier revisions of a node are remembered.
const EARLIER: usize = 4;

/// A node and the pods that take room of it.
#[derive(Clone, Debug)]
pub(crate) struct HeldNode<N> {
    /// Once it was seen.
    pub(crate) seen: Option<SeenNode<N>>,
    pub(crate) taken: Taken,
    pub(crate) pods: BTreeSet<Arc<VmName>>,
}

/// A node that was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenNode<N> {
    /// Its object is gone, and pods of it are left: a node of this name that comes finds its books.
    pub(crate) is_gone: bool,
    pub(crate) revision: String,
    /// Revisions that came before: a word of one of them is late.
    earlier: VecDeque<String>,
    pub(crate) allocatable: Resources,
    pub(crate) hold: Hold,
    /// Its kubelet does not answer, or is not ready.
    pub(crate) is_silent: bool,
    pub(crate) mode: Mode,
    /// In thousandths of what it can allocate.
    pub(crate) watermark: Option<u64>,
    pub(crate) held: N,
}

// === impl HeldNode ===

impl<N> Default for HeldNode<N> {
    fn default() -> Self {
        Self { seen: None, taken: Taken::default(), pods: BTreeSet::new() }
    }
}

impl<N: Node> HeldNode<N> {
    /// The node, if it is there.
    pub(crate) fn there(&self) -> Option<&SeenNode<N>> {
        self.seen.as_ref().filter(|seen| !seen.is_gone)
    }

    /// Whether the node is there, and treated like this.
    pub(crate) fn is(&self, mode: Mode) -> bool {
        self.there().is_some_and(|seen| seen.mode == mode)
    }

    /// The node's object is gone. What its pods were granted stays in its books: they may run on.
    pub(crate) fn leave(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.is_gone = true;
        }
    }

    /// Whether the shares of this node's pods have entered its books as they do in this mode.
    pub(crate) fn has_entered(&self, mode: Mode) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.mode == mode)
    }

    /// The node was seen; these shares of its pods enter the books, which `hold` makes if the node was not known.
    pub(crate) fn see<'a>(
        &mut self,
        node: &node::Node,
        (mode, watermark): (Mode, Option<u64>),
        hold: impl FnOnce() -> N,
        shares: impl Iterator<Item = (&'a Arc<VmName>, Share)>,
    ) -> bool {
        let taken = self.taken;
        let allocatable = node.allocatable;
        let seen = self.seen.get_or_insert_with(|| SeenNode {
            is_gone: false,
            revision: String::new(),
            earlier: VecDeque::new(),
            allocatable,
            hold: Hold::of(node),
            is_silent: false,
            mode,
            watermark,
            held: hold(),
        });
        let before = (taken, seen.mode, seen.allocatable);
        let last = std::mem::replace(&mut seen.revision, node.revision.clone());
        seen.remember(last);
        seen.allocatable = allocatable;
        (seen.is_gone, seen.mode, seen.watermark) = (false, mode, watermark);
        (seen.hold, seen.is_silent) = (Hold::of(node), node.is_silent());
        seen.change(before, taken, |books| {
            books.set_hold(seen.hold);
            for (name, share) in shares {
                enter(books, name, share, mode);
            }
        })
    }

    /// A pod takes another share of this node, or came or left. Whether room came free.
    pub(crate) fn change(
        &mut self,
        name: &Arc<VmName>,
        before: Option<Share>,
        after: Option<Share>,
        is_same_pod: bool,
    ) -> bool {
        let taken_before = self.taken;
        self.count(name, before, after);
        let Some(seen) = &self.seen else { return false };
        let before_it = (taken_before, seen.mode, seen.allocatable);
        seen.change(before_it, self.taken, |books| {
            let is_vm = |share| matches!(share, Some(Share::Vm { .. }));
            if is_vm(before) && !(is_vm(after) && is_same_pod) {
                books.leave(name);
            }
            if let Some(share) = after {
                enter(books, name, share, seen.mode);
            }
        })
    }

    /// A pod is there again that was gone: its VM may have what another had by its name, or what itself counts with.
    pub(crate) fn returned(&mut self, name: &Arc<VmName>, share: Share) {
        let Some(seen) = &self.seen else { return };
        let most = match (share, seen.mode) {
            (Share::Vm { own, .. }, Mode::Resize) => own.most,
            (share, _) => share.most(),
        };
        seen.held.with_books(|books| books.returned(name, most));
    }

    /// Takes a new pod's share of what is free, or says on which axis it is short. `None`: the node is not
    /// known.
    pub(crate) fn reserve(
        &mut self,
        name: &Arc<VmName>,
        share: Share,
        asked: Resources,
    ) -> Option<Result<(), Short>> {
        let seen = self.there()?;
        let mut taken = self.taken;
        taken.change(None, Some(share));
        let room = taken.room(seen.mode, seen.allocatable);
        let reserved =
            seen.held.with_books(|books| match self.short(share, asked, books.summary()) {
                Some(short) => Err(short),
                None => {
                    books.set_room(room);
                    enter(books, name, share, seen.mode);
                    Ok(())
                }
            });
        if reserved.is_ok() {
            self.count(name, None, Some(share));
        }
        Some(reserved)
    }

    /// A headroom pod is to hold less: the room falls, if no VM has what comes free of it. Whether it did. Pods that came past
    /// the plugin change nothing about that: their kubelet admits them once the headroom is gone.
    pub(crate) fn give_up(&mut self, name: &Arc<VmName>, before: Share, after: Share) -> bool {
        let Some(seen) = &self.seen else { return false };
        let mut taken = self.taken;
        taken.change(Some(before), Some(after));
        let room = taken.room(seen.mode, seen.allocatable);
        let [had, has] = [&self.taken, &taken].map(|it| it.held(seen.mode, seen.allocatable));
        let is_free = seen.held.with_books(|books| {
            let is_free = has.covers(books.reserved().min(had));
            if is_free {
                books.set_room(room);
            }
            is_free
        });
        if is_free {
            self.count(name, Some(before), Some(after));
        }
        is_free
    }

    /// What pods that are to be placed find by these figures of the books.
    pub(crate) fn open(&self, books: Summary) -> Summary {
        self.there().map(|seen| seen.open(&self.taken, books)).unwrap_or_default()
    }

    /// On which axis a new pod is short by these figures of the books.
    pub(crate) fn short(&self, share: Share, asked: Resources, books: Summary) -> Option<Short> {
        self.there()?.short(&self.taken, share, asked, books)
    }

    /// On which axis a new pod were short without these pods, by the books; `None`: the node is not known.
    pub(crate) fn short_without<'a>(
        &self,
        pods: impl Iterator<Item = (&'a Arc<VmName>, Share)>,
        share: Share,
        asked: Resources,
    ) -> Option<Option<Short>> {
        let seen = self.there()?;
        let mut taken = self.taken;
        let books = seen.held.with_books(|books| {
            let mut reserved = Sum::default();
            reserved.change(Resources::ZERO, books.reserved());
            for (name, share) in pods {
                taken.change(Some(share), None);
                reserved.change(books.reserved_for(name).unwrap_or_default(), Resources::ZERO);
            }
            let room = taken.room(seen.mode, seen.allocatable);
            Summary { room, reserved: reserved.resources() }
        });
        Some(seen.short(&taken, share, asked, books))
    }

    /// Counts what is no matter of the books.
    fn count(&mut self, name: &Arc<VmName>, before: Option<Share>, after: Option<Share>) {
        self.taken.change(before, after);
        match after {
            Some(_) if before.is_none() => drop(self.pods.insert(Arc::clone(name))),
            Some(_) => {}
            None => drop(self.pods.remove(name)),
        }
    }
}

// === impl SeenNode ===

impl<N: Node> SeenNode<N> {
    /// Whether a word of this revision says what was so before.
    pub(crate) fn is_late(&self, revision: &str) -> bool {
        self.earlier.iter().any(|earlier| earlier == revision)
    }

    /// Another revision came after this one, unless an API server went back to one that came before.
    fn remember(&mut self, last: String) {
        if self.is_late(&self.revision) {
            self.earlier.clear();
        } else if !last.is_empty() && last != self.revision {
            self.earlier.push_back(last);
        }
        while self.earlier.len() > EARLIER {
            self.earlier.pop_front();
        }
    }

    /// Changes the books in one step with the room that the pods leave. Whether room came free for pods that are to be
    /// placed, since it was so `before`.
    fn change(
        &self,
        before: (Taken, Mode, Resources),
        taken: Taken,
        change: impl FnOnce(&mut Books),
    ) -> bool {
        let Self { mode, allocatable, .. } = self;
        let (taken_before, mode_before, allocatable_before) = before;
        self.held.with_books(|books| {
            let before = taken_before.open(mode_before, allocatable_before, books.summary());
            books.set_room(taken.room(*mode, *allocatable));
            change(books);
            let after = taken.open(*mode, *allocatable, books.summary());
            !before.free().covers(after.free())
        })
    }

    fn open(&self, taken: &Taken, books: Summary) -> Summary {
        taken.open(self.mode, self.allocatable, books)
    }

    fn short(
        &self,
        taken: &Taken,
        share: Share,
        asked: Resources,
        books: Summary,
    ) -> Option<Short> {
        let open = self.open(taken, books);
        let short = Short::of(asked, open.free(), open.room);
        match self.mode {
            // What a VM starts with beyond its request is growth.
            Mode::Headroom(_) => {
                short.or_else(|| Short::of(share.beyond_requests(asked), books.free(), books.room))
            }
            Mode::Resize => {
                short.or_else(|| Short::of(share.asked_apart(asked), open.free(), open.room))
            }
            Mode::Dedicated => short,
        }
    }
}

/// A VM's share is an entry in the books; another's is no part of them. No less is reserved for a VM than its pod
/// requests; where others place pods, than its pod requests and has. Where its pod is resized, what its own container
/// has is what it may have.
fn enter(books: &mut Books, name: &Arc<VmName>, share: Share, mode: Mode) {
    let Share::Vm { record, requests, sure, ceiling, kept, own, has_namesake, .. } = share else {
        return;
    };
    let name = || Arc::clone(name);
    match mode {
        Mode::Dedicated => books.enter_pod(name(), record, requests, ceiling, kept),
        Mode::Headroom(_) => books.enter_pod(name(), record, sure, ceiling, kept),
        Mode::Resize => {
            let Own { requests, allotted, most } = own;
            books.enter_allotted(name(), record, requests, most, allotted);
        }
    }
    if has_namesake {
        books.doubt_names(&name());
    }
}
