//! What is checked after each event: by the API server's objects and the hypervisors' sizes, and by who answers.

use crate::cluster::agent::Agent;
use crate::cluster::api::Api;
use crate::cluster::kubelet::Kubelet;
use crate::cluster::nodes::{is_dedicated, is_resized};
use crate::cluster::plugin::Plugin;
use crate::cluster::pods::{beside, container};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use windlass_plugin_core::cluster::Node;
use windlass_protocol::pod::{Ceiling, Pod, VmContainer};
use windlass_protocol::{Moment, Resources, node};

/// A law that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// When, in true time.
    pub at: Moment,
    /// Which.
    pub law: Law,
    /// What was seen.
    pub seen: String,
}

/// What always holds in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Law 2: what pods and VMs take of a node never exceeds what it can allocate.
    BooksWithinTheNode,
    /// At most one plugin answers at a time, and epochs grow.
    OneLeader,
    /// No answer is used, and no binding takes effect, once a later leader answers.
    Fenced,
    /// Law 2: where VMs' pods are resized, no VM may have more than its kubelet has allocated.
    Allocated,
    /// Law 9: what a VM may have is covered by what the API server has recorded of it.
    RecordedAhead,
    /// Laws 1 and 9: what a VM may have is covered by the books of the plugin that answers.
    Covered,
    /// Law 9: books that are rebuilt equal those that were lost, after each agent's next requests.
    RebuildEqualsLive,
    /// Law 6: a write takes effect on what was looked at: the object, its spec and the pod that ran its VM.
    MeantForIt,
    /// Law 7: what is not known withdraws no VM.
    NothingWithdrawn,
    /// Law 8: in a kind world pods that fit are placed, and VMs get what fits.
    KindWorld,
}

/// Who has led, and what was wrong.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    pub(crate) broken: Vec<Broken>,
    /// The processes that have answered, by number and life, in the order in which they began to.
    terms: BTreeMap<Life, u32>,
    /// The highest epoch in which a plugin has answered.
    epoch: u32,
    /// The Lease was deleted: a later leader may not know of earlier epochs.
    was_lease_gone: bool,
    /// Nodes that changed, and the most that may be taken of each.
    pub(crate) upset: BTreeMap<String, Resources>,
    /// The API server went back: it has lost what was recorded.
    pub(crate) has_lost_records: bool,
    /// A plugin was lost that was to remember it.
    pub(crate) is_outside: bool,
}

/// A process of a plugin, and how often that has started.
pub(crate) type Life = (usize, u64);

// === impl Judge ===

impl Judge {
    pub(crate) fn say(&mut self, at: Moment, law: Law, seen: String) {
        self.broken.push(Broken { at, law, seen });
    }

    /// Somebody deleted the Lease.
    pub(crate) const fn lease_gone(&mut self) {
        self.was_lease_gone = true;
    }

    /// A plugin promises something, or what it promised takes effect.
    pub(crate) fn fence(&mut self, at: Moment, by: Life, what: &str) {
        let last = self.terms.len();
        if self.terms.get(&by).is_some_and(|term| usize::try_from(*term).is_ok_and(|it| it < last))
        {
            let seen = format!("{what} of plugin {by:?} counts, and a later one answers");
            self.say(at, Law::Fenced, seen);
        }
    }

    /// Looks at who may answer, in which epoch.
    pub(crate) fn leaders(&mut self, at: Moment, serve: &[(Life, u32)]) {
        if serve.len() > 1 {
            self.say(at, Law::OneLeader, format!("{serve:?} answer"));
        }
        for (by, epoch) in serve {
            let next = u32::try_from(self.terms.len()).unwrap_or(u32::MAX) + 1;
            self.terms.entry(*by).or_insert(next);
            if *epoch < self.epoch && !self.was_lease_gone {
                let seen = format!("plugin {by:?} in epoch {epoch}, after epoch {}", self.epoch);
                self.say(at, Law::OneLeader, seen);
            }
            self.epoch = self.epoch.max(*epoch);
        }
    }

    /// Looks at what is taken of each node.
    pub(crate) fn nodes(
        &mut self,
        at: Moment,
        (api, kubelets): (&Api, &BTreeMap<String, Kubelet>),
        agents: &BTreeMap<String, Agent>,
    ) {
        for node in api.nodes.values() {
            // A later leader believes an agent that names no last permit once, up to what was recorded.
            let is_old = |pod: &&Rc<Pod>| agents.get(&pod.uid).is_some_and(|agent| agent.was_old);
            if self.terms.len() > 1 && api.on(&node.name).any(|pod| is_old(&pod)) {
                continue;
            }
            let taken = taken_of(node, (api, kubelets), agents);
            let most = self.upset.get(&node.name).copied().unwrap_or_default();
            let has = node.allocatable.max(most);
            if !has.covers(taken) {
                let seen = format!("{}: {taken} of {has} are taken", node.name);
                self.say(at, Law::BooksWithinTheNode, seen);
            }
        }
    }

    /// Looks at what is allocated to VMs whose pods are resized.
    pub(crate) fn allocated(
        &mut self,
        at: Moment,
        (api, kubelets): (&Api, &BTreeMap<String, Kubelet>),
        agents: &BTreeMap<String, Agent>,
    ) {
        let upset = &self.upset;
        for (uid, agent) in agents.iter().filter(|(_, it)| !upset.contains_key(&it.node)) {
            let node = api.nodes.get(&agent.node);
            let ensured = node.and_then(|node| ensured(node, kubelets, uid));
            let most = agent.most();
            if let Some(ensured) = ensured.filter(|ensured| !ensured.covers(most)) {
                let seen = format!("{} may have {most}, and {ensured} is allocated", agent.pod);
                self.broken.push(Broken { at, law: Law::Allocated, seen });
            }
        }
    }

    /// Whether this much of a VM is recorded, and allocated where that counts.
    pub(crate) fn is_recorded(
        &self,
        (api, kubelets): (&Api, &BTreeMap<String, Kubelet>),
        (uid, agent): (&String, &Agent),
        size: Resources,
    ) -> bool {
        let node = api.nodes.get(&agent.node);
        let ensured = node.and_then(|node| ensured(node, kubelets, uid));
        ensured.is_none_or(|ensured| ensured.covers(size))
            && recorded(api, uid, agent).is_none_or(|counted| counted.covers(size))
    }

    /// Looks at what the API server has recorded of each VM.
    pub(crate) fn recorded(&mut self, at: Moment, api: &Api, agents: &BTreeMap<String, Agent>) {
        let upset = &self.upset;
        for (uid, agent) in agents.iter().filter(|(_, it)| !upset.contains_key(&it.node)) {
            let most = agent.most();
            if let Some(counted) = recorded(api, uid, agent).filter(|it| !it.covers(most)) {
                let seen = format!("{} may have {most}, and {counted} is recorded", agent.pod);
                self.broken.push(Broken { at, law: Law::RecordedAhead, seen });
            }
        }
    }

    /// Looks at what the plugin that answers has reserved for each VM that it knows.
    pub(crate) fn covered(
        &mut self,
        at: Moment,
        plugin: &Plugin,
        agents: &BTreeMap<String, Agent>,
    ) {
        for (uid, agent) in agents {
            if plugin.books.uid_of(&agent.pod) != Some(uid) {
                continue;
            }
            let node = plugin.books.node_of(&agent.pod);
            let reserved = node.and_then(|node| node.with_books(|it| it.reserved_for(&agent.pod)));
            let most = agent.most();
            if let Some(reserved) = reserved.filter(|reserved| !reserved.covers(most)) {
                let seen =
                    format!("{} ({uid}) may have {most}, and {reserved} is reserved", agent.pod);
                self.say(at, Law::Covered, seen);
            }
        }
    }
}

/// What is taken of a node.
pub(crate) fn taken_of(
    node: &node::Node,
    (api, kubelets): (&Api, &BTreeMap<String, Kubelet>),
    agents: &BTreeMap<String, Agent>,
) -> Resources {
    let of_pod = |pod: &Rc<Pod>| {
        let agent = agents.get(&pod.uid);
        let kubelet = kubelets.get(&node.name);
        let allocated = kubelet.and_then(|it| it.allocated(&pod.uid)).unwrap_or_default();
        if is_resized(node) {
            taken_by_resized(pod, agent, allocated)
        } else if is_dedicated(node) {
            taken_by(pod, agent)
        } else {
            taken_by_shared(pod, agent, allocated)
        }
    };
    api.on(&node.name).map(of_pod).fold(Resources::ZERO, Resources::saturating_add)
}

/// What a VM has whatever comes, where its pod is resized.
fn ensured(
    node: &node::Node,
    kubelets: &BTreeMap<String, Kubelet>,
    uid: &str,
) -> Option<Resources> {
    let ensured = || kubelets.get(&node.name).and_then(|it| it.ensures(uid)).unwrap_or_default();
    is_resized(node).then(ensured)
}

/// What the API server has recorded of a VM; `None`: its pod is gone.
fn recorded(api: &Api, uid: &str, agent: &Agent) -> Option<Resources> {
    let pod = api.pod(&agent.pod, uid)?;
    let is_resized = api.nodes.get(&agent.node).is_some_and(|node| is_resized(node));
    let object = agent.object.as_ref().and_then(|name| api.vms.get(name));
    let counted = match object.map(|stored| &stored.shown.object) {
        // What its object asks for is recorded by itself. A pod that the object does not name counts with the maximum.
        Some(of) if of.pod.as_ref() == Some(&pod.name.name) => counted(pod, of.ceiling).max(of.has),
        Some(_) | None => counted(pod, pod.vm.as_ref().and_then(|vm| vm.ceiling)),
    };
    Some(if is_resized { sure(pod) } else { counted })
}

/// What a plugin that starts now counts a VM with.
fn counted(pod: &Pod, ceiling: Option<Ceiling>) -> Resources {
    let Some(vm) = &pod.vm else { return pod.requests };
    let recorded = ceiling.map(|ceiling| ceiling.size);
    let counted = recorded.unwrap_or(vm.bounds.max).max(pod.requests);
    Resources { mem: counted.mem.round_up(vm.memory_slot), ..counted }
}

/// What a VM has for sure where its pod is resized.
fn sure(pod: &Pod) -> Resources {
    let own = container(pod).filter(|container| container.fixed.is_none());
    let own = own.filter(|_| pod.vm.as_ref().is_some_and(|vm| vm.object == pod.name));
    own.map_or(pod.requests, VmContainer::sure)
}

/// What a pod takes of a node where VMs' pods are resized: the kubelet compares what it has allocated.
fn taken_by_resized(pod: &Pod, agent: Option<&Agent>, allocated: Resources) -> Resources {
    let has = agent.map(|agent| agent.size.saturating_add(beside(pod))).unwrap_or_default();
    allocated.max(has)
}

/// What a pod takes of a dedicated node. Pods that came past the plugin are no matter of the law.
fn taken_by(pod: &Pod, agent: Option<&Agent>) -> Resources {
    let has = agent.map(|agent| agent.size).unwrap_or_default();
    let is_ours = pod.vm.as_ref().is_some_and(|_| pod.scheduler != PAST);
    if is_ours { pod.requests.max(has) } else { Resources::ZERO }
}

/// What a pod takes of a shared node: the kubelet compares what it has allocated, whether it has said so of the pod or
/// not, and a headroom pod holds what VMs have.
fn taken_by_shared(pod: &Pod, agent: Option<&Agent>, allocated: Resources) -> Resources {
    let has = agent.map(|agent| agent.size).unwrap_or_default();
    if pod.is_headroom { Resources::ZERO } else { allocated.max(has) }
}

/// The scheduler of pods that are bound past the plugin.
pub(crate) const PAST: &str = "past";

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ms: {:?}: {}", self.at.millis(), self.law, self.seen)
    }
}
