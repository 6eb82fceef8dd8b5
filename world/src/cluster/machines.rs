//! The nodes: when kubelets look, and how pods end.

use crate::cluster::{ClusterWorld, Due};
use windlass_protocol::VmName;
use windlass_protocol::pod::Phase;

// === impl ClusterWorld ===

impl ClusterWorld {
    pub(super) fn kubelet_looks(&mut self, node: &str) {
        self.looks.remove(node);
        let kubelet = self.kubelets.entry(node.to_owned()).or_default();
        let looked = kubelet.look(&self.api, node);
        for _ in 0..looked.deferred {
            self.met.note("resizes that were deferred");
        }
        for _ in 0..looked.infeasible {
            self.met.note("resizes that were infeasible");
        }
        for _ in 0..looked.rejected {
            self.met.note("pods that the kubelet rejected");
        }
        for uid in looked.ended {
            self.agents.remove(&uid);
        }
        for uid in looked.started {
            self.vm_starts(&uid);
        }
        let terminating = self.api.pods.values().filter(|pod| {
            pod.is_headroom && pod.is_terminating && pod.node.as_deref() == Some(node)
        });
        let ends: Vec<_> = terminating.map(|pod| (pod.name.clone(), pod.uid.clone())).collect();
        for (pod, uid) in ends {
            self.arrange(500, Due::Ends { pod, uid });
        }
        let wait = 10 + self.chance.below(500);
        self.arrange(wait, Due::Reports(node.to_owned()));
    }

    pub(super) fn kubelet_reports(&mut self, node: &str) {
        let kubelet = self.kubelets.get_mut(node);
        if kubelet.is_some_and(|kubelet| kubelet.report(&mut self.api, node)) {
            let wait = 10 + self.chance.below(500);
            self.arrange(wait, Due::Reports(node.to_owned()));
        }
        // A resize that is deferred is tried again.
        let waits = |pod: &std::rc::Rc<windlass_protocol::pod::Pod>| {
            pod.allocation.as_ref().is_some_and(|it| it.pending.is_some())
        };
        if self.api.on(node).any(waits) && self.looks.insert(node.to_owned()) {
            self.arrange(1_000, Due::Looks(node.to_owned()));
        }
    }

    /// A pod is deleted; one that has a node takes its time.
    pub(super) fn delete(&mut self, name: &VmName, grace: u64) {
        let Some(pod) = self.api.pods.get(name) else { return };
        let (uid, is_there) = (pod.uid.clone(), pod.counts());
        if !is_there {
            return self.api.remove(name);
        }
        self.api.change(name, |pod| pod.is_terminating = true);
        self.arrange(grace, Due::Ends { pod: name.clone(), uid });
    }

    /// A pod ends, and stays as an object until it is deleted.
    pub(super) fn end_pod(&mut self, name: &VmName) {
        if let Some(uid) =
            self.api.pods.get(name).filter(|pod| pod.counts()).map(|pod| pod.uid.clone())
        {
            self.agents.remove(&uid);
            self.api.change(name, |pod| pod.phase = Phase::Failed);
        }
    }

    /// The containers of a pod that is deleted have ended: its VM is gone, and the pod will be.
    pub(super) fn stops(&mut self, name: &VmName, uid: &str) {
        if self.api.pod(name, uid).is_some() {
            self.agents.remove(uid);
            let wait = 1 + self.chance.below(300);
            self.arrange(wait, Due::Removes { pod: name.clone(), uid: uid.to_owned() });
        }
    }

    pub(super) fn removes(&mut self, name: &VmName, uid: &str) {
        self.agents.remove(uid);
        if self.api.pod(name, uid).is_some() {
            self.api.remove(name);
        }
    }
}
