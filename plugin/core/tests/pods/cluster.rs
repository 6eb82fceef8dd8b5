//! Nodes, pods and agents for these tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Placement, Pools, WhyNot};
use windlass_plugin_core::{Ask, Books, Granted, Pods, Proposed, Summary};
use windlass_protocol::pod::{Ceiling, Phase, Pod, PodVm};
use windlass_protocol::{Bounds, Bytes, MilliCpu, Moment, Resources, VmInfo, VmName, node};

pub(crate) const NOW: Moment = Moment::from_millis(1_000_000);

/// The books of a node, for one thread; its figures are published after each change.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    books: RefCell<Books>,
    summary: Cell<Summary>,
    /// How often the lock was taken.
    pub(crate) locked: Cell<usize>,
}

// === impl Held ===

impl Held {
    pub(crate) fn empty() -> Self {
        let books = RefCell::new(Books::new(Resources::ZERO));
        Self { books, summary: Cell::default(), locked: Cell::default() }
    }
}

impl Node for Held {
    fn with_books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        self.locked.set(self.locked.get() + 1);
        let mut books = self.books.borrow_mut();
        let answer = ask(&mut books);
        self.summary.set(books.summary());
        answer
    }

    fn summary(&self) -> Summary {
        self.summary.get()
    }
}

/// A cluster of these nodes, each with this many compute units.
pub(crate) fn cluster(nodes: &[(&str, u64)]) -> Pods<Held> {
    let nodes = nodes.iter().map(|(name, units)| node(name, cu(*units)));
    cluster_of(Pools::default(), nodes.collect())
}

/// A cluster of these nodes, treated like this.
pub(crate) fn cluster_of(pools: Pools, nodes: Vec<node::Node>) -> Pods<Held> {
    let mut pods = Pods::of(pools);
    pods.nodes_listed(nodes, |_| Held::empty());
    pods
}

pub(crate) fn node(name: &str, allocatable: Resources) -> node::Node {
    node::Node {
        name: name.to_owned(),
        uid: format!("uid of {name}"),
        revision: allocatable.to_string(),
        allocatable,
        labels: BTreeMap::new(),
        is_unschedulable: false,
        has_memory_pressure: false,
        taints: Vec::new(),
        problems: Vec::new(),
    }
}

/// A VM pod without a node that requests this many compute units, and may have four.
pub(crate) fn vm(name: &str, units: u64) -> Pod {
    let bounds = Bounds { min: cu(1), max: cu(4) };
    let vm = PodVm {
        object: VmName::on_host(name),
        bounds,
        priority: 0,
        memory_slot: VmInfo::DEFAULT_MEMORY_SLOT,
        ceiling: None,
        controller: None,
        may_move: false,
        is_enabled: true,
        container: None,
        scaling: None,
        problems: Vec::new(),
    };
    Pod { vm: Some(Box::new(vm)), ..other(name, units) }
}

/// A pod that is no VM.
pub(crate) fn other(name: &str, units: u64) -> Pod {
    Pod {
        name: VmName::on_host(name),
        uid: format!("uid of {name}"),
        revision: "1".to_owned(),
        node: None,
        scheduler: "windlass".to_owned(),
        phase: Phase::Pending,
        is_terminating: false,
        requests: cu(units),
        vm: None,
        is_headroom: false,
        allocation: None,
        problems: Vec::new(),
    }
}

/// The same pod, bound to a node.
pub(crate) fn on(node: &str, pod: Pod) -> Pod {
    let revision = format!("{} on {node}", pod.revision);
    Pod { node: Some(node.to_owned()), phase: Phase::Running, revision, ..pod }
}

/// The same pod at another revision.
pub(crate) fn at(revision: &str, pod: Pod) -> Pod {
    Pod { revision: revision.to_owned(), ..pod }
}

pub(crate) fn ended(pod: Pod) -> Pod {
    Pod { phase: Phase::Succeeded, revision: format!("{} ended", pod.revision), ..pod }
}

/// The same VM pod with this ceiling recorded.
pub(crate) fn capped(units: u64, mut pod: Pod) -> Pod {
    let ceiling = Ceiling { epoch: 1, write: 2, size: cu(units) };
    pod.vm.as_mut().unwrap().ceiling = Some(ceiling);
    at(&format!("{} capped at {units}", pod.revision), pod)
}

pub(crate) fn place(pods: &mut Pods<Held>, pod: &Pod, node: &str) -> Placement {
    pods.place(pod, node).unwrap()
}

pub(crate) fn refusal(pods: &mut Pods<Held>, pod: &Pod, node: &str) -> String {
    pods.place(pod, node).unwrap_err().to_string()
}

pub(crate) fn why(fits: Result<(), WhyNot>) -> Option<String> {
    fits.err().map(|why| why.to_string())
}

/// What an agent that names its last permit is granted.
pub(crate) fn ask(pods: &Pods<Held>, vm: &str, last: u64, wanted: u64) -> Granted {
    let vm = VmName::on_host(vm);
    let ask = Ask { last_permit: Some(cu(last)), ..Ask::from(cu(wanted)) };
    pods.node_of(&vm).unwrap().with_books(|books| permit(books, NOW, &vm, ask))
}

/// What an agent is granted where a ceiling that is called for is recorded at once.
pub(crate) fn permit(books: &mut Books, now: Moment, vm: &VmName, ask: Ask) -> Granted {
    match books.propose(now, vm, ask).unwrap() {
        Proposed::Granted(granted) => granted,
        Proposed::Waits => {
            let write = books.ceiling_due(vm, 1).unwrap();
            books.ceiling_written(vm, write.next);
            books.request(now, vm, ask).unwrap()
        }
    }
}

/// What is reserved for a VM on a node.
pub(crate) fn booked(pods: &Pods<Held>, node: &str, vm: &str) -> Option<Resources> {
    pods.node(node).unwrap().with_books(|books| books.reserved_for(&VmName::on_host(vm)))
}

/// The room for VMs, and what is free of it, in compute units.
pub(crate) fn room(pods: &Pods<Held>, node: &str) -> (u64, u64) {
    let summary = pods.node(node).unwrap().summary();
    (summary.room.cpu.milli() / 1000, summary.free().cpu.milli() / 1000)
}

pub(crate) fn cu(count: u64) -> Resources {
    Resources { cpu: MilliCpu::from_cores(count), mem: Bytes::from_gib(count) }
}
