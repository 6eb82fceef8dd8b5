//! The nodes of a cluster, and which of them know a VM.
//!
//! A VM is known by its namespace and name, which is what agents say, and by its uid where its
//! declaration has one: the same name with another uid is another VM, which inherits nothing. A VM
//! that is being moved is known to two nodes. The one that it leaves answers its agent; the one
//! that it goes to keeps room for what it has, so that neither promises that room to another.
//!
//! A cluster has no lock. It is generic over what it holds of a node: in a process books behind a lock
//! of their own, so that no request waits for another node's. A request is [`Cluster::node_of`], and then [`wire::grant`](crate::wire::grant)
//! with that node's books. Declaring anew keeps what was reserved: a reload forgets nothing.

use crate::books::Books;
use crate::by_name::ByName;
use crate::summary::Summary;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{Resources, VmName, VmRecord};

/// What a cluster holds of a node: its books, and whatever else belongs to a node.
pub trait Node {
    /// Looks into the books of this node, or changes them.
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T;

    /// The figures of its books after their last change. Advice on a placement reads them of every node: a shell
    /// with many nodes publishes them after each change, and takes no lock here.
    fn summary(&self) -> Summary {
        self.with_books(|books| books.summary())
    }
}

/// The nodes, by name, and where each VM is.
#[derive(Clone, Debug)]
pub struct Cluster<N> {
    nodes: BTreeMap<String, N>,
    vms: ByName<VmName, Known>,
}

/// What is kept of a declaration: the books of its nodes have the rest.
#[derive(Clone, Debug)]
struct Known {
    uid: Option<String>,
    place: Place,
}

/// A VM, as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredVm {
    /// Tells VMs apart that have the same name one after the other; `None`: the name alone counts.
    pub uid: Option<String>,
    /// Which nodes know it.
    pub place: Place,
    /// What the books know of it.
    pub record: VmRecord,
    /// It counts with this until its agent speaks.
    pub ceiling: Resources,
}

/// Which nodes know a VM, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It runs there.
    On(Arc<str>),
    /// It runs there and is about to be moved: it keeps its size.
    Leaving(Arc<str>),
    /// It is being moved: it keeps its size, and both know it.
    Between {
        /// It runs there, and its agent is answered from there.
        from: Arc<str>,
        /// Room is kept for it there.
        to: Arc<str>,
    },
}

// === impl Cluster ===

impl<N> Default for Cluster<N> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new(), vms: ByName::default() }
    }
}

impl<N: Node> Cluster<N> {
    /// The nodes, by name.
    pub const fn nodes(&self) -> &BTreeMap<String, N> {
        &self.nodes
    }

    /// The node that answers the agent of this VM; `None` if no node knows it.
    pub fn node_of(&self, vm: &VmName) -> Option<&N> {
        self.nodes.get(self.vms.get(vm)?.place.answers())
    }

    /// These are the nodes and VMs from here on. The name of each node comes with its
    /// room; `hold` makes what is held of a node from what was held of it, and starts with
    /// empty books where that is nothing. VMs on nodes that are not declared are known to no node.
    ///
    /// VMs leave the books of nodes that they are not on any more before they enter others: an
    /// agent that asks in between is told that its VM is unknown, and asks again.
    pub fn declare(
        &mut self,
        rooms: &BTreeMap<String, Resources>,
        vms: BTreeMap<Arc<VmName>, DeclaredVm>,
        mut hold: impl FnMut(&str, Option<N>) -> N,
    ) {
        let reserved = self.leave(&vms);
        let mut known = std::mem::take(&mut self.nodes);
        let mut here: BTreeMap<&str, Vec<(&Arc<VmName>, &DeclaredVm)>> = BTreeMap::new();
        for (name, vm) in &vms {
            for node in vm.place.nodes() {
                here.entry(node).or_default().push((name, vm));
            }
        }
        for (name, room) in rooms {
            let node = hold(name, known.remove(name));
            node.with_books(|books| {
                books.set_room(*room);
                for (vm, declared) in here.remove(name.as_str()).unwrap_or_default() {
                    let before = reserved.get(vm).copied();
                    books.presume(vm.clone(), declared.record, declared.ceiling_on(name, before));
                    books.set_moving(vm, declared.place.is_moving());
                }
            });
            self.nodes.insert(name.clone(), node);
        }
        self.vms = ByName::default();
        for (name, DeclaredVm { uid, place, .. }) in vms {
            self.vms.insert(name, Known { uid, place });
        }
    }

    /// Takes VMs out of the books of nodes that do not know them any more; what is reserved for
    /// each VM by the node that it was on, if it is still the same VM.
    fn leave(&self, next: &BTreeMap<Arc<VmName>, DeclaredVm>) -> BTreeMap<Arc<VmName>, Resources> {
        let mut reserved = BTreeMap::new();
        for (vm, known) in self.vms.in_order() {
            let same = next.get(vm).filter(|next| next.uid == known.uid);
            let keeps = |node: &str| same.is_some_and(|next| next.place.nodes().any(|n| n == node));
            for name in known.place.nodes() {
                let Some(node) = self.nodes.get(name) else { continue };
                let answers = same.is_some() && known.place.answers() == name;
                let has = node.with_books(|books| {
                    let has = books.reserved_for(vm).filter(|_| answers);
                    if !keeps(name) {
                        books.leave(vm);
                    }
                    has
                });
                reserved.extend(has.map(|has| (vm.clone(), has)));
            }
        }
        reserved
    }
}

// === impl DeclaredVm ===

impl DeclaredVm {
    /// What it counts with on a node until its agent speaks there, where the node that it is or
    /// was on had reserved this much for it. One that is moved keeps its size on the way.
    fn ceiling_on(&self, node: &str, reserved: Option<Resources>) -> Resources {
        match (&self.place, reserved) {
            (Place::Between { from, to: _ }, Some(reserved)) if node != &**from => reserved,
            (_, reserved) => self.ceiling.max(reserved.unwrap_or_default()),
        }
    }
}

// === impl Place ===

impl Place {
    /// The node that answers its agent.
    pub fn answers(&self) -> &str {
        match self {
            Self::On(node) | Self::Leaving(node) | Self::Between { from: node, to: _ } => node,
        }
    }

    /// Whether it keeps its size because it is moved, or about to be.
    pub const fn is_moving(&self) -> bool {
        match self {
            Self::On(_) => false,
            Self::Leaving(_) | Self::Between { .. } => true,
        }
    }

    /// Every node that knows it.
    fn nodes(&self) -> impl Iterator<Item = &str> {
        let to = match self {
            Self::On(_) | Self::Leaving(_) => None,
            Self::Between { from: _, to } => Some(&**to),
        };
        [self.answers()].into_iter().chain(to)
    }
}
