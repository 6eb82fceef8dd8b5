//! The kind world at the end: nothing is lost or late any more, and everybody gets what fits.

use crate::cluster::ClusterWorld;
use crate::cluster::agent::Agent;
use crate::cluster::laws::{Law, PAST};
use crate::cluster::network::Network;
use crate::cluster::nodes::{is_dedicated, is_resized};
use crate::cluster::pods::{beside, container};
use std::rc::Rc;
use std::time::Duration;
use windlass_protocol::node::Node;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Bytes, MilliCpu, Resources, VmName};

/// A leader is found, bindings of earlier ones are too old, lost events are found, and smaller sizes are said twice within this.
const WITHIN: Duration = Duration::from_secs(240);
/// Between two looks.
const LOOKS: Duration = Duration::from_secs(5);

/// A pod may keep less than a step that is worth a write.
const JOINED: Resources = Resources::new(MilliCpu::from_milli(99), Bytes::from_mib(63));

// === impl ClusterWorld ===

impl ClusterWorld {
    /// Faults end, and the world comes to rest within a stated time: a plugin answers, pods that fit are placed, VMs have
    /// what they want where that fits, and rebuilt books equal those of the leader.
    pub fn end(&mut self) {
        self.network = Network::default();
        for agent in self.agents.values_mut() {
            agent.silent_until = self.now;
            agent.names_last = true;
        }
        self.list_for_node_agents();
        self.end_drains();
        let until = self.now.after(WITHIN);
        while self.judge.broken.is_empty() {
            self.run(LOOKS);
            let (law, unmet) = match self.unmet() {
                Some(unmet) => (Law::KindWorld, unmet),
                None => match self.unlike_the_rebuilt() {
                    // A write of a headroom pod may be under way.
                    Some(unlike) => (Law::RebuildEqualsLive, unlike),
                    None => break,
                },
            };
            if self.now >= until {
                return self.judge.say(self.now, law, unmet);
            }
        }
    }

    /// VMs leave nodes that are cordoned, and then they are uncordoned.
    fn end_drains(&mut self) {
        let cordoned = self.api.nodes.values().filter(|node| node.is_unschedulable);
        let cordoned: Vec<String> = cordoned.map(|node| node.name.clone()).collect();
        let until = self.now.after(WITHIN);
        while self.judge.broken.is_empty() && !cordoned.is_empty() {
            self.run(LOOKS);
            let Some(unmet) = self.undrained() else { break };
            if self.now >= until {
                self.judge.say(self.now, Law::KindWorld, unmet);
            }
        }
        cordoned.iter().for_each(|name| self.cordons(name, false));
    }

    /// A VM that may be moved and has not left a cordoned node, though another one has room for it.
    fn undrained(&self) -> Option<String> {
        if self.serving().next().is_none() {
            return Some("no plugin answers".to_owned());
        }
        let is_cordoned =
            |name: &str| self.api.nodes.get(name).is_some_and(|it| it.is_unschedulable);
        let all = self.agents.iter().filter(|_| self.pools.empties_cordoned);
        for (uid, agent) in all.filter(|(_, agent)| is_cordoned(&agent.node)) {
            let pod = self.api.pod(&agent.pod, uid).filter(|pod| !pod.is_terminating);
            let is_there = |object: &VmName| self.api.vms.contains_key(object);
            let Some(pod) = pod.filter(|_| agent.object.as_ref().is_some_and(is_there)) else {
                continue;
            };
            let size = agent.most().max(pod.requests);
            let is_of_vm =
                |it: &Rc<Pod>| it.vm.as_ref().map(|vm| &vm.object) == agent.object.as_ref();
            let has_room = |name: &&String| {
                if self.api.on(name).any(is_of_vm) {
                    return true;
                }
                let taken = self.may_be_taken(name, |_| Resources::ZERO).saturating_add(size);
                let node = self.api.nodes.get(*name).filter(|node| is_dedicated(node));
                node.is_some_and(|node| node.allocatable.covers(taken))
            };
            if let Some(other) = self.nodes_for(pod.requests).iter().find(has_room) {
                let says = [&agent.node, other].map(|name| self.leader_says(name)).join(" and ");
                return Some(format!("{} has not left, and fits on {other}: {says}", pod.name));
            }
        }
        None
    }

    /// What is not as it should be yet.
    fn unmet(&self) -> Option<String> {
        if !self.all_run() || self.serving().next().is_none() {
            return Some("no plugin answers".to_owned());
        }
        self.unplaced()
            .or_else(|| self.short())
            .or_else(|| self.unsettled())
            .or_else(|| self.unrecorded())
            .or_else(|| self.unmanaged())
    }

    /// A VM that may have more than is recorded, after the API server went back. Where the plugin that was to remember it was lost,
    /// a node may have no room left for it.
    fn unrecorded(&self) -> Option<String> {
        let all = (&self.api, &self.kubelets);
        let is_recorded = |it: &(&String, &Agent)| self.judge.is_recorded(all, *it, it.1.most());
        let node = |it: &(&String, &Agent)| self.api.nodes.get(&it.1.node);
        let is_promised = |it: &(&String, &Agent)| {
            !self.judge.is_outside || node(it).is_some_and(|node| self.has_room_for_all(node))
        };
        let mut ahead = self.agents.iter().filter(|it| !is_recorded(it) && is_promised(it));
        let (_, agent) = ahead.next().filter(|_| self.judge.has_lost_records)?;
        Some(format!("what {} may have, {}, is not recorded", agent.pod, agent.most()))
    }

    /// A pod of a VM that is resized, or keeps room that its VM does not use.
    fn unsettled(&self) -> Option<String> {
        let leader = self.serving().next().map(|(nth, _)| &self.plugins[nth].plugin)?;
        for (uid, agent) in &self.agents {
            let Some(pod) = self.api.pod(&agent.pod, uid).filter(|_| self.is_resizable(agent))
            else {
                continue;
            };
            // What it had before its pod was resized no kubelet allocates on a node that has no room for that.
            let allocated = container(pod).and_then(|container| container.allocated);
            let is_covered = allocated.is_some_and(|allocated| allocated.covers(agent.size));
            let node = self.api.nodes.get(&agent.node);
            let taken = || self.may_be_taken(&agent.node, beside);
            if !is_covered && node.is_some_and(|node| !node.allocatable.covers(taken())) {
                continue;
            }
            let least = pod.vm.as_ref().map(|vm| vm.bounds.min).unwrap_or_default();
            let spec = container(pod).map(|container| container.spec).unwrap_or_default();
            let unused = spec.saturating_sub(agent.size.max(least));
            let is_settled = pod.allocation.as_ref().is_some_and(|it| it.is_settled());
            let is_exact = spec.covers(agent.size) && JOINED.covers(unused);
            if !is_settled || !is_exact || leader.books.waits_for_kubelet(&pod.name) {
                let says = self.leader_says(&agent.node);
                return Some(format!("{} has {}: {pod:?}, {says}", pod.name, agent.size));
            }
        }
        None
    }

    /// Whether the pod of a VM is one that is resized.
    fn is_resizable(&self, agent: &Agent) -> bool {
        let node = self.api.nodes.get(&agent.node);
        let pod = self.api.pods.get(&agent.pod).filter(|pod| !pod.is_terminating);
        let is_own = |pod: &&Rc<Pod>| pod.vm.as_ref().is_some_and(|vm| vm.object == pod.name);
        let container = pod.filter(is_own).and_then(|pod| container(pod));
        node.is_some_and(|node| is_resized(node)) && container.is_some_and(|it| it.fixed.is_none())
    }

    /// A pod that waits though a node has room for it.
    fn unplaced(&self) -> Option<String> {
        let pending = self
            .api
            .pods
            .values()
            .filter(|pod| pod.node.is_none() && !pod.is_terminating && pod.scheduler != PAST);
        for pod in pending {
            let Some(vm) = &pod.vm else { continue };
            let asked = pod.requests.max(vm.bounds.min);
            let asked = Resources { mem: asked.mem.round_up(vm.memory_slot), ..asked };
            let (asked, left) = (self.asked_by_vm(pod, asked), self.node_left(pod));
            for name in self.nodes_for(pod.requests) {
                if left.as_ref() == Some(&name) {
                    continue;
                }
                let Some(node) = self.api.nodes.get(&name) else { continue };
                let is_left =
                    |taken: Resources| node.allocatable.covers(taken.saturating_add(asked));
                let fits = if is_dedicated(node) {
                    is_left(self.may_be_taken(&name, |_| Resources::ZERO))
                } else {
                    // What a VM starts with beyond its request is growth, which headroom has to cover. Where pods are resized, one
                    // that cannot be, or is another object's, may request less than its VM has.
                    asked == pod.requests
                        && (!is_resized(node) || is_left(self.may_be_taken(&name, beside)))
                };
                if fits {
                    let says = self.leader_says(&name);
                    return Some(format!("{} waits, and fits on {name}: {says}", pod.name));
                }
            }
        }
        None
    }

    /// What a pod takes from its first moment, if its VM has an object that asks for more, or comes with what it has.
    fn asked_by_vm(&self, pod: &Pod, asked: Resources) -> Resources {
        let object = pod.vm.as_ref().and_then(|vm| self.api.vms.get(&vm.object));
        match object.map(|stored| &stored.shown.object) {
            Some(object) if object.pod.as_ref() == Some(&pod.name.name) => asked.max(object.has),
            Some(_) => pod.vm.as_ref().map_or(asked, |vm| asked.max(vm.bounds.max)),
            None => asked,
        }
    }

    /// A VM that has not what it wants, on a node where all that VMs want fits.
    fn short(&self) -> Option<String> {
        for node in self.api.nodes.values() {
            let here = || self.agents.values().filter(|agent| agent.node == node.name);
            let is_ahead = |agent: &&Agent| agent.size != agent.goal;
            let Some(short) = here().find(is_ahead) else { continue };
            if self.has_room_for_all(node) && self.may_grow(short) {
                let seen = format!("{} has {} of {}", short.pod, short.size, short.goal);
                return Some(format!("{seen}: {}", self.leader_says(&node.name)));
            }
        }
        None
    }

    /// Whether all that pods and VMs of a node want fits.
    fn has_room_for_all(&self, node: &Node) -> bool {
        let wanted = self.api.on(&node.name).filter(|pod| !pod.is_headroom).map(|pod| {
            let goal = self.agents.get(&pod.uid).map(|agent| agent.goal);
            pod.requests.max(goal.unwrap_or_default().saturating_add(beside(pod)))
        });
        node.allocatable.covers(wanted.fold(Resources::ZERO, Resources::saturating_add))
    }

    /// What the books of the leader say of a node, and of its headroom pod.
    fn leader_says(&self, node: &str) -> String {
        let leader = self.serving().next().map(|(nth, _)| &self.plugins[nth].plugin);
        let status = leader.and_then(|plugin| plugin.books.status_of(node));
        let headroom = self.api.on(node).find(|pod| pod.is_headroom);
        format!("{status:?}, and {headroom:?}")
    }

    /// Whether a VM asks for no more than its bounds.
    fn may_grow(&self, agent: &Agent) -> bool {
        let vm = self.api.pods.get(&agent.pod).and_then(|pod| pod.vm.as_ref());
        let is_fixed = self.api.nodes.get(&agent.node).is_some_and(|node| is_resized(node))
            && !self.is_resizable(agent);
        vm.is_some_and(|vm| vm.bounds.max.covers(agent.goal)) && !is_fixed
    }

    /// What pods may take of a node whose VMs have no headroom. Of a pod's requests this is `beside` its VM.
    fn may_be_taken(&self, node: &str, beside: impl Fn(&Pod) -> Resources) -> Resources {
        let taken = self.api.on(node).map(|pod| {
            let agent = self.agents.get(&pod.uid);
            let has = agent.map(|agent| agent.most().saturating_add(beside(pod)));
            pod.requests.max(has.unwrap_or_default())
        });
        taken.fold(Resources::ZERO, Resources::saturating_add)
    }
}
