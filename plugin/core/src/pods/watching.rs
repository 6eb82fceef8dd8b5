//! Nodes and pods, as the API server tells of them: by a watch, by a list, or by a read.

use crate::cluster::Node;
use crate::pods::gone::How;
use crate::pods::held::HeldNode;
use crate::pods::known::{Known, Told};
use crate::pods::{Freed, Pods};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_protocol::pod::Pod;
use windlass_protocol::{VmName, node};

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// The watch shows a node. `hold` makes what is held of it, with empty books, if it is not known.
    pub fn node_seen(&mut self, node: &node::Node, hold: impl FnOnce() -> N) -> Freed {
        let known = self.nodes.get(node.name.as_str()).and_then(HeldNode::there);
        if known.is_some_and(|seen| seen.revision == node.revision || seen.is_late(&node.revision))
        {
            return Freed::default();
        }
        self.take_node(node, hold)
    }

    /// The watch shows that a node is gone. Nothing is placed there and no agent of its VMs is answered, but its books
    /// stay as long as it has pods: they run on, and a node of this name may come again.
    pub fn node_gone(&mut self, name: &str) {
        if let Some(held) = self.nodes.get_mut(name) {
            held.leave();
            self.drop_unused(name);
        }
    }

    /// These are the nodes from here on.
    pub fn nodes_listed(
        &mut self,
        nodes: Vec<node::Node>,
        mut hold: impl FnMut(&node::Node) -> N,
    ) -> Freed {
        let mut freed = Freed::default();
        for node in &nodes {
            freed.and(self.take_node(node, || hold(node)));
        }
        let listed: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let known = self.nodes.in_order().into_iter().map(|(name, _)| name);
        let gone = known.filter(|name| !listed.contains(&***name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.node_gone(&name);
        }
        freed
    }

    /// The watch shows a pod.
    pub fn pod_seen(&mut self, pod: Pod) -> Freed {
        self.take(pod, Told::Watched)
    }

    /// A pod was read: older words of it may be under way in the watch.
    pub fn pod_read(&mut self, pod: Pod) -> Freed {
        self.take(pod, Told::Read)
    }

    /// The watch shows that a pod is gone.
    pub fn pod_gone(&mut self, name: &VmName, uid: &str) -> Freed {
        self.gone.add(uid, How::Deleted);
        self.waiting.gone(name, uid);
        match self.pods.get(name) {
            Some(known) if known.uid == uid => self.put(name, None),
            Some(_) | None => Freed::default(),
        }
    }

    /// These are the pods from here on, whatever the watch said before. A placement that no pod has shown
    /// yet goes on: the list may be older. Pods that came count before others go.
    pub fn pods_listed(&mut self, pods: Vec<Pod>) -> Freed {
        let mut freed = Freed::default();
        let mut listed: BTreeSet<Arc<VmName>> = BTreeSet::new();
        for pod in pods {
            let name = pod.name.clone();
            freed.and(self.list(pod));
            // Whatever is known of the pod, a list that has it leaves it there.
            listed.extend(self.pods.name(&name).cloned());
        }
        self.waiting.retain(|name| listed.contains(name));
        let known = self.pods.in_order().into_iter().filter(|(name, _)| !listed.contains(*name));
        let gone = known.filter(|(_, known)| known.placed.node().is_none());
        for name in gone.map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>() {
            if let Some(known) = self.pods.get(&name).filter(|known| known.told != Told::Read) {
                self.gone.add(&known.uid, How::Deleted);
            }
            freed.and(self.put(&name, None));
        }
        freed
    }

    fn take_node(&mut self, node: &node::Node, hold: impl FnOnce() -> N) -> Freed {
        let held = self.nodes.or_default(&node.name);
        let mode = self.pools.mode_of(&node.labels);
        let is_new = !held.has_entered(mode);
        let pods: Vec<Arc<VmName>> = held.pods.iter().filter(|_| is_new).cloned().collect();
        let shares = pods.iter().filter_map(|name| Some((name, self.pods.get(name)?.share())));
        let mut freed = Freed::default();
        let watermark = self.pools.watermark_of(&node.labels);
        freed.note(&node.name, held.see(node, (mode, watermark), hold, shares));
        pods.iter().for_each(|pod| self.mark_pod(pod));
        self.newcomers.extend(pods);
        freed
    }

    /// The watch or a read tells of a pod. What is known of a pod that was placed may be ahead of the
    /// watch: another pod of its name that the watch shows then is an older one.
    pub(super) fn take(&mut self, pod: Pod, told: Told) -> Freed {
        let pod = self.judged(pod);
        let name = pod.name.clone();
        let next = match self.pods.get_mut(&name) {
            Some(known) if known.uid == pod.uid => {
                // The watch shows what was read: from here on the pod shows its place by itself.
                let confirms = known.revision == pod.revision
                    && told == Told::Watched
                    && known.told != Told::Watched;
                if !confirms && known.is_late(&pod) {
                    return Freed::default();
                }
                known.clone().told(pod, told)
            }
            known => {
                let is_placed = known.as_ref().is_some_and(|known| known.placed.node().is_some());
                let is_old = is_placed && told == Told::Watched;
                if is_old {
                    // The watch may tell of it once more when the pod that was placed is no placement any more.
                    self.gone.add(&pod.uid, How::Replaced);
                }
                if self.gone.holds(&pod.uid, known.is_some()) {
                    return Freed::default();
                }
                if let Some(known) = known {
                    self.gone.add(&known.uid, How::Replaced);
                }
                Known::of(pod, told)
            }
        };
        self.put(&name, Some(next))
    }

    /// A list has this pod.
    fn list(&mut self, pod: Pod) -> Freed {
        let pod = self.judged(pod);
        let name = pod.name.clone();
        let next = match self.pods.get(&name) {
            Some(known) if known.uid == pod.uid => {
                known.clone().listed(pod).had(|| self.reserved_at(&name))
            }
            // Which of both is older, only a read of the pod that was placed can say.
            Some(known) if known.placed.node().is_some() => return Freed::default(),
            known => {
                if let Some(known) = known {
                    let how = match known.told {
                        Told::Read => How::Replaced,
                        Told::Ahead | Told::Watched => How::Deleted,
                    };
                    self.gone.add(&known.uid, how);
                }
                Known::of(pod, Told::Watched)
            }
        };
        // The API server went back. An agent was answered by the name of its VM since then, whichever pod had it.
        let returns = self.gone.was_deleted(&next.uid);
        self.gone.remove(&next.uid);
        self.put_as(&name, Some(next), returns)
    }
}
