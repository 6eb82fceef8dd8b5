//! What changes under a plugin: nodes that shrink, go and come again, or come to another pool; a Lease that is deleted; an API
//! server whose store is replaced by an earlier copy.
//!
//! A node that changed is *upset*: what its pods and VMs take is a fact, and no more than before its change. It is so until the
//! leader knows of the change, and its books and all that is taken fit in again; from then on the laws hold as before. What an
//! API server lost when it went back is recorded again by a plugin that remembers it, and so is a ceiling that a person removed
//! where no pod covers what its VM has. A plugin that is lost within a minute of that is outside of what is promised.

use crate::cluster::agent::Agent;
use crate::cluster::call::Kind;
use crate::cluster::laws::taken_of;
use crate::cluster::nodes::{Sharing, is_resized, node, node_name};
use crate::cluster::steps::{Step, cu};
use crate::cluster::{ClusterWorld, Due};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use windlass_plugin_core::cluster::Node as _;
use windlass_protocol::node::Node;
use windlass_protocol::pod::Pod;
use windlass_protocol::{Resources, VmName};

/// A plugin that remembers what the API server lost writes it again within this.
const REMEMBERS: Duration = Duration::from_secs(60);

/// More than any node has.
const ANY: u64 = 1_000_000;

// === impl ClusterWorld ===

impl ClusterWorld {
    /// A node has another size.
    pub(super) fn node_size(&mut self, nth: usize, units: u64) {
        self.change_node(nth, |node| node.allocatable = cu(units));
    }

    /// A node comes to another pool.
    pub(super) fn node_pool(&mut self, nth: usize, sharing: Sharing) {
        self.change_node(nth, |node| node.labels = sharing.labels());
    }

    /// A person cordons a node for a while: VMs that may be moved leave it where the plugin has them do so.
    pub(super) fn cordon(&mut self, nth: usize, time: u64) {
        let name = node_name(nth);
        self.met.note_if("nodes that were cordoned", self.api.nodes.contains_key(&name));
        self.cordons(&name, true);
        self.arrange(time, Due::Uncordons(name));
    }

    pub(super) fn cordons(&mut self, name: &str, is_unschedulable: bool) {
        let before = self.api.nodes.get(name).map(|node| Node::clone(node));
        if let Some(node) = before.filter(|node| node.is_unschedulable != is_unschedulable) {
            self.api.put_node(Node { is_unschedulable, ..node });
        }
    }

    /// The object of a node is gone, and comes again after this many milliseconds. Its kubelet and its pods run on.
    pub(super) fn node_gone(&mut self, nth: usize, units: u64, time: u64) {
        let name = node_name(nth);
        let Some(gone) = self.api.nodes.get(&name).cloned() else { return };
        self.met.note("nodes that were gone");
        self.upset(&name, gone.allocatable);
        self.api.remove_node(&name);
        let mut comes =
            Node { labels: gone.labels.clone(), ..node(nth, units, Sharing::Dedicated) };
        comes.uid = format!("{} again", gone.uid);
        self.arrange(time, Due::NodeComes(Box::new(comes)));
    }

    pub(super) fn node_comes(&mut self, node: Node) {
        if !self.api.nodes.contains_key(&node.name) {
            let name = node.name.clone();
            self.upset(&name, node.allocatable);
            self.api.put_node(node);
            self.look_soon(name);
        }
    }

    /// A person removes the ceiling of a VM, unless no plugin remembers what the VM has.
    pub(super) fn no_ceiling(&mut self, vm: &VmName) {
        let node = self.api.pods.get(vm).and_then(|pod| self.api.nodes.get(pod.node.as_deref()?));
        let is_all = node.is_some_and(|node| is_resized(node) && self.has_more_than_its_pod(vm));
        if is_all && !self.remember() {
            return;
        }
        self.met.note("ceilings that a person removed");
        self.met.note_if("ceilings that a plugin was to remember", is_all);
        self.api.change(vm, |pod| {
            if let Some(vm) = &mut pod.vm {
                vm.ceiling = None;
            }
        });
    }

    /// Whether nothing but a ceiling says what a VM may have, where its pod is resized.
    fn has_more_than_its_pod(&self, vm: &VmName) -> bool {
        let promised = self.serving().filter_map(|(nth, _)| {
            let node = self.plugins[nth].plugin.books.node_of(vm)?;
            node.with_books(|books| books.reserved_for(vm))
        });
        let most = promised.fold(Resources::ZERO, Resources::max);
        let mut agents = self.agents.iter().filter(|(_, agent)| agent.pod == *vm);
        agents.any(|(uid, agent)| {
            let has = self.kubelets.get(&agent.node).and_then(|it| it.ensures(uid));
            !has.unwrap_or_default().covers(agent.most().max(most))
        })
    }

    /// Whether a VM of this node has no ceiling, and may have more than its pod.
    fn has_more_than_pods_say(&self, node: &str) -> bool {
        let has_no_ceiling =
            |pod: &&Rc<Pod>| pod.vm.as_ref().is_some_and(|vm| vm.ceiling.is_none());
        let mut without = self.api.on(node).filter(has_no_ceiling);
        without.any(|pod| self.has_more_than_its_pod(&pod.name))
    }

    /// A plugin is to remember what nothing else says from here on. `false`: none does.
    fn remember(&mut self) -> bool {
        let is_led = self.serving().count() == 1;
        if is_led {
            self.remembers_until = self.remembers_until.max(self.now.after(REMEMBERS));
        }
        is_led
    }

    /// Somebody deletes the Lease.
    pub(super) fn lease_gone(&mut self) {
        self.met.note("leases that were deleted");
        self.api.delete_lease();
        self.judge.lease_gone();
    }

    /// The store of the API server is replaced by the copy that was taken last, if the plugin that leads by that leads now.
    pub(super) fn go_back(&mut self) {
        let is_led = self.serving().count() == 1;
        if !is_led || !self.api.is_led_as_copied() {
            return self.met.note("copies that were not put back");
        }
        self.met.note("API servers that went back");
        let before: Vec<_> = self.api.nodes.values().cloned().collect();
        before.iter().for_each(|node| self.upset(&node.name, cu(ANY)));
        self.api.go_back();
        let vms = self.api.pods.values().filter(|pod| pod.vm.is_some());
        let ended = vms.filter(|pod| !self.agents.contains_key(&pod.uid));
        let ended: BTreeSet<&str> = ended.map(|pod| pod.uid.as_str()).collect();
        self.kubelets.values_mut().for_each(|kubelet| kubelet.forget(&ended));
        for node in before {
            // A kubelet makes the object of its node anew.
            if !self.api.nodes.contains_key(&node.name) {
                let again = Node { uid: format!("{} again", node.uid), ..Node::clone(&node) };
                self.arrange(5_000, Due::NodeComes(Box::new(again)));
            }
        }
        self.noticed = self.api.revision;
        self.remembers_until = self.now.after(REMEMBERS);
        self.judge.has_lost_records = true;
        let names: Vec<String> = self.api.nodes.keys().cloned().collect();
        for name in names {
            self.upset(&name, cu(ANY));
            self.look_soon(name);
        }
        let pods = self.api.pods.values();
        let waiting = pods.clone().filter(|pod| pod.node.is_none() && pod.vm.is_some());
        let waiting: Vec<_> = waiting.map(|pod| (pod.name.clone(), pod.uid.clone())).collect();
        let going = pods.filter(|pod| pod.node.is_some() && pod.is_terminating);
        let going: Vec<_> = going.map(|pod| (pod.name.clone(), pod.uid.clone())).collect();
        for (pod, uid) in waiting {
            self.arrange(100, Due::Schedules { pod, uid });
        }
        for (pod, uid) in going {
            self.arrange(500, Due::Ends { pod, uid });
        }
    }

    /// Whether a plugin is to remember what the API server lost, and must not be lost itself.
    pub(super) fn must_remember(&self, step: &Step) -> bool {
        let ends = match step {
            Step::Stop(..)
            | Step::Kill(..)
            | Step::Leave(_)
            | Step::CutOff(..)
            | Step::Down(_)
            | Step::LeaseGone => true,
            Step::Vm { .. }
            | Step::VmPast { .. }
            | Step::Other { .. }
            | Step::Delete { .. }
            | Step::End { .. }
            | Step::Goal { .. }
            | Step::AgentRestarts(_)
            | Step::AgentIsOld(_)
            | Step::AgentIsSilent(..)
            | Step::NoCeiling(_)
            | Step::Machine { .. }
            | Step::MachineGone(_)
            | Step::MachinePod { .. }
            | Step::Move { .. }
            | Step::Unlabel(_)
            | Step::AgentKill(..)
            | Step::AgentLeave(_)
            | Step::AgentStop(..)
            | Step::AgentCut(_)
            | Step::CutPods(_)
            | Step::CutNodes(_)
            | Step::Compact
            | Step::NodeSize { .. }
            | Step::NodePool { .. }
            | Step::Cordon { .. }
            | Step::NodeGone { .. }
            | Step::Copy
            | Step::Back
            | Step::Network(_) => false,
        };
        ends && self.now < self.remembers_until
    }

    /// Nodes are upset no more once all fits in again, as far as the leader knows, too.
    pub(super) fn settle_nodes(&mut self) {
        let [(nth, _)] = self.serving().collect::<Vec<_>>()[..] else { return };
        let plugin = &self.plugins[nth].plugin;
        let is_told = |kind| plugin.has_come_to(kind, self.api.revision);
        if self.judge.upset.is_empty() || !Kind::ALL.into_iter().all(is_told) {
            return;
        }
        let is_settled = |name: &&String| {
            let Some(node) = self.api.nodes.get(*name) else { return false };
            let Some(books) = plugin.books.node(name) else { return false };
            let is_known = plugin.books.node_revision(name) == Some(&node.revision);
            let all = (&self.api, &self.kubelets);
            let taken = taken_of(node, all, &self.agents);
            let mut here = self.agents.iter().filter(|(_, agent)| agent.node == **name);
            // What was promised before the change is told after it.
            let may_have = |agent: &Agent| {
                let promised = books.with_books(|it| it.reserved_for(&agent.pod));
                agent.most().max(promised.filter(|_| is_resized(node)).unwrap_or_default())
            };
            let is_covered =
                |it: (&String, &Agent)| self.judge.is_recorded(all, it, may_have(it.1));
            let fits = !books.with_books(|it| it.is_over()) && node.allocatable.covers(taken);
            is_known && fits && here.all(is_covered)
        };
        let settled: Vec<String> = self.judge.upset.keys().filter(is_settled).cloned().collect();
        for name in settled {
            self.met.note("nodes that were settled after a change");
            self.judge.upset.remove(&name);
        }
    }

    fn change_node(&mut self, nth: usize, change: impl FnOnce(&mut Node)) {
        let name = node_name(nth);
        let Some(before) = self.api.nodes.get(&name).cloned() else { return };
        let mut next = Node::clone(&before);
        change(&mut next);
        if next == *before {
            return;
        }
        let comes = is_resized(&next) && !is_resized(&before);
        if comes && self.has_more_than_pods_say(&name) && !self.remember() {
            return;
        }
        self.met.note("nodes that changed");
        let is_in_pool = next.labels == before.labels;
        self.upset(&name, if is_in_pool { before.allocatable } else { cu(ANY) });
        self.api.put_node(next);
        self.look_soon(name);
    }

    /// From here on no more than `most`, or than it may take already, is to be taken of a node.
    fn upset(&mut self, node: &str, most: Resources) {
        let known = self.judge.upset.entry(node.to_owned()).or_default();
        *known = known.max(most);
    }
}
