//! An API server with its own truth, a plugin that follows it, and the agents of the VMs.
//!
//! Every VM pod is placed through the plugin. Bindings are lost, and those that are lost may take effect
//! later; watch events wait, and come again; the plugin is restarted. What a VM may have is what its agent
//! was permitted.

use crate::cluster::{Held, NOW, cu, node, other, permit, vm};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{NodePods, Outcome, Placement};
use windlass_plugin_core::{Ask, Pods};
use windlass_protocol::pod::{Ceiling, Phase, Pod};
use windlass_protocol::status::NodeStatus;
use windlass_protocol::timing::REQUEST_IS_LATE;
use windlass_protocol::{Bytes, Resources, VmName};

const NODES: usize = 2;
/// The names of VM pods; as many are of others.
const NAMES: usize = 3;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A pod of this name is created, if there is none: a VM, or another.
    Create {
        is_vm: bool,
        name: usize,
        units: u64,
        odd: u64,
    },
    /// The scheduler binds a VM pod through the plugin.
    Place(usize, usize, Fate),
    /// A binding that was sent takes effect, if the pod is as it was.
    Land(usize),
    /// The plugin reads a pod whose placement is under way, after it has changed it or not.
    Settle {
        name: usize,
        touch: bool,
    },
    /// A pod that is no VM is bound past the plugin, if its requests fit in with those of all pods.
    Bind(usize, usize),
    /// A pod that is no VM requests something else.
    Resize(usize, u64),
    /// A pod is to end, ends, or is removed.
    Terminate {
        is_vm: bool,
        name: usize,
    },
    End {
        is_vm: bool,
        name: usize,
    },
    Remove {
        is_vm: bool,
        name: usize,
    },
    /// The agent of a VM asks, and does or does not hear the answer.
    Ask {
        name: usize,
        units: u64,
        says_last: bool,
        is_heard: bool,
    },
    /// The recorded ceiling of a VM is lowered to what its agent was permitted.
    Lower(usize),
    /// The watch delivers the next events, or one that it has delivered before.
    Deliver(usize),
    Repeat(usize),
    /// The watch breaks: a list is made, and arrives before anything else of the watch.
    List,
    Listed,
    /// Another plugin starts, and touches all pods that are not bound.
    Restart,
    /// A node has another size.
    Allocatable(usize, u64),
}

/// What becomes of a binding.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Answered,
    Refused,
    AnswerLost,
    UnderWay,
}

#[derive(Clone, Debug)]
enum Event {
    Seen(Box<Pod>),
    Gone(VmName, String),
}

pub(crate) struct Model {
    pub(crate) pods: Pods<Held>,
    server: BTreeMap<VmName, Pod>,
    sizes: [u64; NODES],
    revision: u64,
    bindings: Vec<Placement>,
    events: Vec<Event>,
    next: usize,
    delivered: Vec<Event>,
    /// A list that was made and has not arrived, and where the watch goes on after it.
    list: Option<(Vec<Pod>, usize)>,
    /// What agents were permitted, by the uid of the pod.
    permits: BTreeMap<String, Resources>,
}

// === impl Model ===

impl Default for Model {
    fn default() -> Self {
        let mut model = Self {
            pods: Pods::default(),
            server: BTreeMap::new(),
            sizes: [8; NODES],
            revision: 0,
            bindings: Vec::new(),
            events: Vec::new(),
            next: 0,
            delivered: Vec::new(),
            list: None,
            permits: BTreeMap::new(),
        };
        model.pods = model.rebuilt();
        model
    }
}

impl Model {
    /// Whether the step gave room away by a decision.
    pub(crate) fn step(&mut self, step: &Step) -> bool {
        match *step {
            Step::Create { is_vm, name, units, odd } => self.create(is_vm, name, units, odd),
            Step::Place(name, node, fate) => {
                self.place(&vm_name(name), &node_name(node), fate);
                return true;
            }
            Step::Land(nth) if !self.bindings.is_empty() => {
                let binding = self.bindings.remove(nth % self.bindings.len());
                self.land(&binding);
            }
            Step::Land(_) => {}
            Step::Settle { name, touch } => self.settle(&vm_name(name), touch),
            Step::Bind(name, node) => self.bind(&other_name(name), &node_name(node), node),
            Step::Resize(name, units) => {
                self.change(&other_name(name), |pod| pod.requests = cu(units));
            }
            Step::Terminate { is_vm, name } => {
                self.change(&pod_name(is_vm, name), |pod| pod.is_terminating = true);
            }
            Step::End { is_vm, name } => {
                self.change(&pod_name(is_vm, name), |pod| pod.phase = Phase::Failed);
            }
            Step::Remove { is_vm, name } => self.remove(&pod_name(is_vm, name)),
            Step::Ask { name, units, says_last, is_heard } => {
                self.ask(&vm_name(name), units, says_last, is_heard);
                return true;
            }
            Step::Lower(name) => self.lower(&vm_name(name)),
            Step::Deliver(many) => (0..many).for_each(|_| self.deliver()),
            Step::Repeat(nth) if !self.delivered.is_empty() => {
                let event = self.delivered[nth % self.delivered.len()].clone();
                self.tell(event);
            }
            Step::Repeat(_) => {}
            Step::List => self.list(),
            Step::Listed => self.listed(),
            Step::Restart => self.restart(),
            Step::Allocatable(at, units) => {
                self.sizes[at] = units;
                self.revision += 1;
                let revision = self.revision.to_string();
                let node =
                    windlass_protocol::node::Node { revision, ..node(&node_name(at), cu(units)) };
                self.pods.node_seen(&node, Held::empty);
            }
        }
        false
    }

    /// Nothing is under way: bindings have taken effect or never will, and all is read.
    pub(crate) fn come_to_rest(&mut self, landed: bool) {
        for binding in std::mem::take(&mut self.bindings).iter().filter(|_| landed) {
            self.land(binding);
        }
        self.listed();
        (self.next..self.events.len()).for_each(|_| self.deliver());
        let open: Vec<VmName> = self.pods.placements().map(|(name, ..)| name.clone()).collect();
        for name in open {
            self.settle(&name, true);
        }
        (self.next..self.events.len()).for_each(|_| self.deliver());
        self.list();
        self.listed();
    }

    /// Books that are made of nothing but what the API server has.
    pub(crate) fn rebuilt(&self) -> Pods<Held> {
        let mut pods = Pods::default();
        let nodes = (0..NODES).map(|at| node(&node_name(at), cu(self.sizes[at])));
        pods.nodes_listed(nodes.collect(), |_| Held::empty());
        pods.pods_listed(self.server.values().cloned().collect());
        pods
    }

    /// The books, after the agent of each VM has said once more what it may have, and again once nothing that
    /// was said before can be under way.
    pub(crate) fn after_each_agent_spoke(&self, pods: &Pods<Held>) -> Vec<(NodePods, NodeStatus)> {
        let later = NOW.after(Duration::from_secs(60));
        for later in [later, later.after(REQUEST_IS_LATE)] {
            for pod in self.server.values().filter(|pod| pod.vm.is_some() && pod.counts()) {
                let last = self.permits.get(&pod.uid).copied();
                let ask = Ask { last_permit: last, ..Ask::from(last.unwrap_or(cu(1))) };
                let node = pods.node_of(&pod.name).unwrap();
                node.with_books(|books| permit(books, later, &pod.name, ask));
            }
        }
        let later = later.after(Duration::from_secs(60));
        let status = |(name, held): (&str, &Held)| {
            let status = pods.status_of(name).unwrap();
            (status, held.with_books(|books| books.status(later)))
        };
        pods.nodes().map(status).collect()
    }

    /// What a pod that is bound may have and is not covered by the books of its node.
    pub(crate) fn uncovered(&self) -> Option<String> {
        for pod in self.server.values().filter(|pod| pod.vm.is_some() && pod.counts()) {
            let permit = self.permits.get(&pod.uid).copied().unwrap_or_default();
            let may = pod.requests.max(permit);
            let node = pod.node.clone().unwrap();
            let held = self.pods.node(&node).unwrap();
            let reserved = held.with_books(|books| books.reserved_for(&pod.name));
            if !reserved.is_some_and(|reserved| reserved.covers(may)) {
                return Some(format!("{} may have {may} on {node}: {reserved:?}", pod.name));
            }
        }
        None
    }

    /// What is taken of each node, by VMs and others, and what it can allocate.
    pub(crate) fn taken(&self) -> Vec<(Resources, Resources)> {
        let status = self.pods.status().into_iter();
        let taken = |node: NodePods| node.reserved.saturating_add(node.others);
        status.map(|node| (node.allocatable, taken(node))).collect()
    }

    fn create(&mut self, is_vm: bool, name: usize, units: u64, odd: u64) {
        let name = pod_name(is_vm, name);
        if self.server.contains_key(&name) {
            return;
        }
        let pod = if is_vm { vm(&name.name, units) } else { other(&name.name, units) };
        let mem = pod.requests.mem.saturating_add(Bytes::from_mib(odd));
        let requests = Resources { mem, ..pod.requests };
        let uid = format!("uid {}", self.revision);
        self.server.insert(name.clone(), Pod { uid, requests, ..pod });
        self.change(&name, |_| {});
    }

    fn place(&mut self, name: &VmName, node: &str, fate: Fate) {
        let Some(pod) = self.server.get(name).cloned() else { return };
        let Ok(placement) = self.pods.place(&pod, node) else { return };
        let outcome = match fate {
            Fate::UnderWay => return self.bindings.push(placement),
            Fate::AnswerLost => {
                self.land(&placement);
                return;
            }
            Fate::Answered if self.land(&placement) => Outcome::Bound,
            Fate::Answered | Fate::Refused => Outcome::Refused,
        };
        self.pods.settle(name, &pod.uid, outcome);
    }

    /// The API server binds the pod if it is the one that the binding means.
    fn land(&mut self, binding: &Placement) -> bool {
        let Placement { pod: name, uid, revision, node, reserved, .. } = binding;
        let Some(pod) = self.server.get(name) else { return false };
        let is_same = pod.uid == *uid && pod.revision == *revision;
        if !is_same || pod.node.is_some() || pod.is_terminating {
            return false;
        }
        self.change(name, |pod| {
            pod.node = Some(node.clone());
            pod.vm.as_mut().unwrap().ceiling =
                Some(Ceiling { epoch: 1, write: 1, size: *reserved });
        });
        true
    }

    fn settle(&mut self, name: &VmName, touch: bool) {
        let known = self.pods.placements().find(|(open, ..)| *open == name);
        let Some(uid) = known.map(|(_, uid, _)| uid.to_owned()) else { return };
        if touch {
            self.change(name, |_| {});
        }
        let read = self.server.get(name).cloned().map(Box::new);
        self.pods.settle(name, &uid, Outcome::Read(read));
    }

    fn bind(&mut self, name: &VmName, node: &str, at: usize) {
        let on = |pod: &&Pod| pod.counts() && pod.node.as_deref() == Some(node);
        let requests = self.server.values().filter(on).map(|pod| pod.requests);
        let taken = requests.fold(Resources::ZERO, Resources::saturating_add);
        let Some(pod) = self.server.get(name).filter(|pod| pod.node.is_none()) else { return };
        if cu(self.sizes[at]).covers(taken.saturating_add(pod.requests)) {
            self.change(name, |pod| pod.node = Some(node.to_owned()));
        }
    }

    fn remove(&mut self, name: &VmName) {
        if let Some(pod) = self.server.remove(name) {
            self.permits.remove(&pod.uid);
            self.events.push(Event::Gone(name.clone(), pod.uid));
        }
    }

    /// What is promised above the recorded ceiling is recorded before it is answered.
    fn ask(&mut self, name: &VmName, units: u64, says_last: bool, is_heard: bool) {
        let Some(pod) = self.server.get(name).filter(|pod| pod.counts()).cloned() else { return };
        let Some(node) = self.pods.node_of(name) else { return };
        let last = self.permits.get(&pod.uid).copied();
        let last_permit = says_last.then(|| last.unwrap_or_default());
        let ask = Ask { last_permit, ..Ask::from(cu(units)) };
        let granted = node.with_books(|books| permit(books, NOW, name, ask));
        let recorded = pod.vm.unwrap().ceiling.unwrap().size;
        if !recorded.covers(granted.permit) {
            self.record(name, recorded.max(granted.permit));
        }
        // What the VM gave back it does not have, whether or not the answer is heard.
        let had = last.unwrap_or_default();
        let permit = if is_heard { granted.permit } else { had.min(cu(units)) };
        self.permits.insert(pod.uid, permit);
    }

    fn lower(&mut self, name: &VmName) {
        let Some(pod) = self.server.get(name).filter(|pod| pod.counts()) else { return };
        if let Some(permit) = self.permits.get(&pod.uid).copied() {
            let node = self.pods.node_of(name);
            let reserved = node.and_then(|node| node.with_books(|books| books.reserved_for(name)));
            // The plugin lowers it to what its books have, which no agent was answered above.
            self.record(name, reserved.unwrap_or(permit).max(permit));
        }
    }

    fn record(&mut self, name: &VmName, size: Resources) {
        let ceiling = Some(Ceiling { epoch: 1, write: 2, size });
        self.change(name, |pod| pod.vm.as_mut().unwrap().ceiling = ceiling);
    }

    /// The API server stores a change of a pod, and the watch will tell of it.
    fn change(&mut self, name: &VmName, change: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.server.get_mut(name) {
            change(pod);
            self.revision += 1;
            pod.revision = self.revision.to_string();
            self.events.push(Event::Seen(Box::new(pod.clone())));
        }
    }

    fn deliver(&mut self) {
        if self.list.is_none()
            && let Some(event) = self.events.get(self.next).cloned()
        {
            self.next += 1;
            self.delivered.push(event.clone());
            self.tell(event);
        }
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Seen(pod) => self.pods.pod_seen(*pod),
            Event::Gone(name, uid) => self.pods.pod_gone(&name, &uid),
        };
    }

    fn list(&mut self) {
        let all = || (self.server.values().cloned().collect(), self.events.len());
        self.list = Some(self.list.take().unwrap_or_else(all));
    }

    fn listed(&mut self) {
        if let Some((listed, next)) = self.list.take() {
            self.next = next;
            self.pods.pods_listed(listed);
        }
    }

    fn restart(&mut self) {
        let unbound = self.server.values().filter(|pod| pod.node.is_none());
        for name in unbound.map(|pod| pod.name.clone()).collect::<Vec<_>>() {
            self.change(&name, |_| {});
        }
        self.pods = self.rebuilt();
        self.next = self.events.len();
        self.list = None;
        self.delivered.clear();
    }
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (name, node, pod) = (0..NAMES, 0..NODES, (any::<bool>(), 0..NAMES));
    let created = (pod.clone(), 1..4_u64, prop_oneof![3 => Just(0), 1 => 1..128_u64]);
    let asked = (name.clone(), 0..6_u64, any::<bool>(), prop::bool::weighted(0.8));
    prop_oneof![
        6 => created.prop_map(|((is_vm, name), units, odd)| Step::Create { is_vm, name, units, odd }),
        8 => (name.clone(), node.clone(), fate()).prop_map(|(vm, on, fate)| Step::Place(vm, on, fate)),
        3 => (0..4_usize).prop_map(Step::Land),
        3 => (name.clone(), any::<bool>()).prop_map(|(name, touch)| Step::Settle { name, touch }),
        3 => (name.clone(), node.clone()).prop_map(|(name, on)| Step::Bind(name, on)),
        1 => (name.clone(), 0..4_u64).prop_map(|(name, units)| Step::Resize(name, units)),
        1 => pod.clone().prop_map(|(is_vm, name)| Step::Terminate { is_vm, name }),
        1 => pod.clone().prop_map(|(is_vm, name)| Step::End { is_vm, name }),
        2 => pod.prop_map(|(is_vm, name)| Step::Remove { is_vm, name }),
        8 => asked.prop_map(|(name, units, says_last, is_heard)| {
            Step::Ask { name, units, says_last, is_heard }
        }),
        1 => name.prop_map(Step::Lower),
        8 => (1..6_usize).prop_map(Step::Deliver),
        3 => (0..40_usize).prop_map(Step::Repeat),
        2 => Just(Step::List),
        2 => Just(Step::Listed),
        1 => Just(Step::Restart),
        1 => (node, 4..12_u64).prop_map(|(on, units)| Step::Allocatable(on, units)),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Answered),
        1 => Just(Fate::Refused),
        2 => Just(Fate::AnswerLost),
        3 => Just(Fate::UnderWay),
    ]
}

fn pod_name(is_vm: bool, name: usize) -> VmName {
    if is_vm { vm_name(name) } else { other_name(name) }
}

fn vm_name(name: usize) -> VmName {
    VmName::on_host(format!("vm{name}"))
}

fn other_name(name: usize) -> VmName {
    VmName::on_host(format!("other{name}"))
}

fn node_name(node: usize) -> String {
    format!("n{node}")
}
