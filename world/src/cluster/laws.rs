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
use windlass_protocol::pod::{Pod, VmContainer};
use windlass_protocol::{Moment, Resources};

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
    /// Law 8: in a kind world pods that fit are placed, and VMs get what fits.
    KindWorld,
}

/// Who has led, and what was wrong.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    pub(crate) broken: Vec<Broken>,
    /// The highest epoch in which a plugin has answered.
    pub(crate) served: u32,
}

// === impl Judge ===

impl Judge {
    pub(crate) fn say(&mut self, at: Moment, law: Law, seen: String) {
        self.broken.push(Broken { at, law, seen });
    }

    /// A plugin of this epoch promises something, or what it promised takes effect.
    pub(crate) fn fence(&mut self, at: Moment, epoch: u32, what: &str) {
        if epoch < self.served {
            let seen = format!("{what} of epoch {epoch} counts, and epoch {} answers", self.served);
            self.say(at, Law::Fenced, seen);
        }
    }

    /// Looks at who may answer.
    pub(crate) fn leaders(&mut self, at: Moment, serve: &[(usize, u32)]) {
        if serve.len() > 1 {
            self.say(at, Law::OneLeader, format!("{serve:?} answer"));
        }
        for (nth, epoch) in serve {
            if *epoch < self.served {
                let seen = format!("plugin {nth} in epoch {epoch}, after epoch {}", self.served);
                self.say(at, Law::OneLeader, seen);
            }
            self.served = self.served.max(*epoch);
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
            if self.served > 1 && api.on(&node.name).any(|pod| is_old(&pod)) {
                continue;
            }
            let mut taken = Resources::ZERO;
            for pod in api.on(&node.name) {
                let agent = agents.get(&pod.uid);
                let of_pod = if is_resized(node) {
                    taken_by_resized(pod, agent, kubelets.get(&node.name))
                } else {
                    taken_by(pod, agent, !is_dedicated(node))
                };
                taken = taken.saturating_add(of_pod);
            }
            if !node.allocatable.covers(taken) {
                let (name, has) = (&node.name, node.allocatable);
                let seen = format!("{name}: {taken} of {has} are taken");
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
        for (uid, agent) in agents {
            let Some(node) = api.nodes.get(&agent.node).filter(|node| is_resized(node)) else {
                continue;
            };
            let kubelet = kubelets.get(&node.name);
            let ensured = kubelet.and_then(|it| it.ensures(uid)).unwrap_or_default();
            let most = agent.most();
            if !ensured.covers(most) {
                let seen = format!("{} may have {most}, and {ensured} is allocated", agent.pod);
                self.say(at, Law::Allocated, seen);
            }
        }
    }

    /// Looks at what the API server has recorded of each VM.
    pub(crate) fn recorded(&mut self, at: Moment, api: &Api, agents: &BTreeMap<String, Agent>) {
        for (uid, agent) in agents {
            let Some(pod) = api.pod(&agent.pod, uid) else { continue };
            let node = api.nodes.get(&agent.node);
            let is_resized = node.is_some_and(|node| is_resized(node));
            let counted = if is_resized { sure(pod) } else { counted(pod) };
            let most = agent.most();
            if !counted.covers(most) {
                let seen = format!("{} may have {most}, and {counted} is recorded", agent.pod);
                self.say(at, Law::RecordedAhead, seen);
            }
        }
    }

    /// Looks at what the plugin that answers has reserved for each VM that it knows.
    pub(crate) fn covered(
        &mut self,
        at: Moment,
        (api, plugin): (&Api, &Plugin),
        agents: &BTreeMap<String, Agent>,
    ) {
        for (uid, agent) in agents {
            let known = plugin.books.pod_revision(&agent.pod);
            if known.and_then(|revision| api.uid_at(revision)) != Some(uid) {
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

/// What a plugin that starts now counts a VM with.
fn counted(pod: &Pod) -> Resources {
    let Some(vm) = &pod.vm else { return pod.requests };
    let recorded = vm.ceiling.filter(|_| vm.object == pod.name).map(|ceiling| ceiling.size);
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
fn taken_by_resized(pod: &Pod, agent: Option<&Agent>, kubelet: Option<&Kubelet>) -> Resources {
    let allocated = kubelet.and_then(|it| it.allocated(&pod.uid)).unwrap_or_default();
    let has = agent.map(|agent| agent.size.saturating_add(beside(pod))).unwrap_or_default();
    allocated.max(has)
}

/// What a pod takes of a node. On a dedicated node pods that came past the plugin are no matter of the law. On a
/// shared one the kubelet compares what it has allocated, and a headroom pod holds what VMs have.
fn taken_by(pod: &Pod, agent: Option<&Agent>, is_shared: bool) -> Resources {
    let has = agent.map(|agent| agent.size).unwrap_or_default();
    if !is_shared {
        let is_ours = pod.vm.as_ref().is_some_and(|_| pod.scheduler != PAST);
        return if is_ours { pod.requests.max(has) } else { Resources::ZERO };
    }
    if pod.is_headroom {
        return Resources::ZERO;
    }
    let is_admitted = pod.phase == windlass_protocol::pod::Phase::Running;
    let requests = if is_admitted { pod.requests } else { Resources::ZERO };
    requests.max(has)
}

/// The scheduler of pods that are bound past the plugin.
pub(crate) const PAST: &str = "past";

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ms: {:?}: {}", self.at.millis(), self.law, self.seen)
    }
}
