//! Pods that want a place: which nodes have room for them, what became of their bindings, and which of those that were refused fit
//! by now.

use super::{ClusterBooks, lock};
use windlass_plugin_core::pods::{Outcome, Settled, Sifted};
use windlass_protocol::VmName;
use windlass_protocol::extender::{HostPriority, PreemptionArgs, PreemptionResult, Score};
use windlass_protocol::pod::Pod;

// === impl ClusterBooks ===

impl ClusterBooks {
    /// Which of these nodes have room for a pod, and why the others have not. A VM pod that none has room for is
    /// remembered.
    pub fn filter<'n>(&self, pod: &Pod, nodes: &'n [String]) -> Sifted<'n> {
        let sifted = self.read().fits_each(pod, nodes);
        if sifted.fit.is_empty() && sifted.others.iter().any(|(why, _)| why.is_for_room()) {
            self.write().refused(pod);
        }
        sifted
    }

    /// How good each of these nodes is for a pod.
    pub fn prioritize(&self, pod: &Pod, nodes: Vec<String>) -> Vec<HostPriority> {
        let scores = self.read().scores(pod, &nodes);
        let score = |(host, score)| HostPriority { host, score: Score::at_most(score) };
        nodes.into_iter().zip(scores).map(score).collect()
    }

    /// The nodes that would have room for a pod without its victims there.
    pub fn preempt(&self, args: PreemptionArgs) -> PreemptionResult {
        let PreemptionArgs { pod, mut victims } = args;
        let pods = self.read();
        victims.retain(|node, victims| {
            let uids = victims.pods.iter().cloned().collect();
            pods.fits_without(&pod, node, &uids).is_ok()
        });
        PreemptionResult { victims }
    }

    /// Whether the watch shows a pod as this, on no node.
    pub(crate) fn shows(&self, pod: &Pod) -> bool {
        let pods = self.read();
        let is_known = pods.uid_of(&pod.name) == Some(&pod.uid)
            && pods.pod_revision(&pod.name) == Some(&pod.revision);
        is_known && pod.node.is_none()
    }

    /// What became of a binding.
    pub(crate) fn settle(&self, name: &VmName, uid: &str, outcome: Outcome) -> Settled {
        let settled = self.write().settle(name, uid, outcome);
        if let Settled::Released(freed) = &settled {
            self.note(freed.clone());
        }
        settled
    }

    /// The placements that no pod has shown yet, with the pods' uids.
    pub(crate) fn placements(&self) -> Vec<(VmName, String)> {
        let pods = self.read();
        pods.placements().map(|(name, uid, _)| (name.clone(), uid.to_owned())).collect()
    }

    /// Takes the nodes on which room came free, with the refused pods that fit there.
    pub(crate) fn take_freed(&self) -> Vec<(String, Vec<(VmName, String)>)> {
        let freed = std::mem::take(&mut *lock(&self.0.freed));
        let pods = self.read();
        let fit = |node: String| {
            let waiting = pods.waiting_for(&node).into_iter();
            let waiting = waiting.map(|pod| (pod.name.clone(), pod.uid.clone())).collect();
            (node, waiting)
        };
        freed.into_iter().map(fit).collect()
    }

    /// A pod that was refused is gone.
    pub(crate) fn waits_no_longer(&self, name: &VmName, uid: &str) {
        self.write().waits_no_longer(name, uid);
    }
}
