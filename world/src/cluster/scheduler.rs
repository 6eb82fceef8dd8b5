//! kube-scheduler: for each VM pod without a node it asks the plugin which nodes fit, and has the plugin bind it to one.
//!
//! It tries again after a while, whatever became of the last try, as the stock one does once a pod has changed or time has passed.

use crate::cluster::laws::PAST;
use crate::cluster::{ClusterWorld, Due, Reaching, State};
use windlass_protocol::{Resources, VmName};

// === impl ClusterWorld ===

impl ClusterWorld {
    pub(super) fn schedule(&mut self, name: &VmName, uid: String) {
        let Some(pod) = self.api.pod(name, &uid).cloned() else { return };
        if pod.node.is_some() || pod.is_terminating || pod.scheduler == PAST {
            return;
        }
        let wait = 700 + self.chance.below(2_500);
        self.arrange(wait, Due::Schedules { pod: name.clone(), uid: uid.clone() });
        let left = self.node_left(&pod);
        let mut nodes: Vec<String> = self.nodes_for(pod.requests);
        nodes.retain(|node| Some(node) != left.as_ref());
        let leader = self.serving().next().map(|(nth, _)| nth);
        let other = usize::try_from(self.chance.below(self.plugins.len() as u64)).unwrap_or(0);
        let nth = leader.filter(|_| !self.chance.happens(10)).unwrap_or(other);
        if self.plugins[nth].state != State::Runs || nodes.is_empty() {
            return;
        }
        let mut fit = None;
        self.with_plugin(nth, |plugin, turn| fit = plugin.filter(turn, &pod, &nodes));
        let Some(fit) = fit.filter(|fit| !fit.is_empty()) else {
            return self.met.note("pods that no node had room for");
        };
        let drawn = if self.chance.happens(70) { 0 } else { self.chance.below(fit.len() as u64) };
        let node = fit[usize::try_from(drawn).unwrap_or(0)].clone();
        if let Some(there) = self.network.agent_way(&mut self.chance) {
            let what = Reaching::Binds { pod: name.clone(), uid, node };
            let life = self.plugins[nth].life;
            self.arrange(there, Due::Reaches { nth, life, what });
        }
    }

    /// The nodes that are not cordoned and whose pods' requests leave room for this, as every scheduler sees it.
    pub(super) fn nodes_for(&self, requests: Resources) -> Vec<String> {
        let fits = |name: &&String| {
            let taken = self.api.requested(name).saturating_add(requests);
            let node = self.api.nodes.get(*name);
            node.is_some_and(|node| !node.is_unschedulable && node.allocatable.covers(taken))
        };
        self.api.nodes.keys().filter(fits).cloned().collect()
    }
}
