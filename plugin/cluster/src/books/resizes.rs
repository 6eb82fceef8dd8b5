//! VMs' own pods in a cluster: which are to be resized, and who waits for that.

use super::ClusterBooks;
use tokio::sync::oneshot;
use windlass_plugin_core::cluster::Node;
use windlass_plugin_core::pods::{Resize, Written};
use windlass_protocol::VmName;
use windlass_protocol::pod::Fixed;

// === impl ClusterBooks ===

impl ClusterBooks {
    /// The VMs of nodes whose pods are resized.
    pub(crate) fn resized(&self) -> Vec<VmName> {
        self.read().resized().cloned().collect()
    }

    /// Why the pod of a VM cannot be resized at all, and its uid.
    pub(crate) fn fixed(&self, vm: &VmName) -> Option<(String, Fixed)> {
        let pods = self.read();
        pods.fixed(vm).map(|(uid, fixed)| (uid.to_owned(), fixed))
    }

    /// What is to be written of a VM's pod.
    pub(crate) fn resize_due(&self, vm: &VmName) -> Option<Resize> {
        let now = self.now();
        self.noting_vm(vm, || self.read().resize_due(now, vm))
    }

    /// This resize is sent now, unless the VM was promised what its pod would give up.
    pub(crate) fn resize_sent(&self, resize: &Resize) -> bool {
        let now = self.now();
        let is_sent = self.write().resize_sent(now, resize);
        self.settle_resize(&resize.vm);
        is_sent
    }

    /// What became of a resize that was sent.
    pub(crate) fn resize_written(&self, resize: &Resize, written: Written) {
        let now = self.now();
        self.noting_vm(&resize.vm, || self.write().resize_written(now, resize, written));
        self.settle_resize(&resize.vm);
    }

    /// A request waits for the kubelet of this VM; resolves once it has answered. `None`: too many VMs wait, or the VM's
    /// pod is not resized.
    pub(super) fn wait_for_kubelet(&self, vm: &VmName) -> Option<oneshot::Receiver<()>> {
        let ended = self.0.waits.add(vm)?;
        self.0.resizes.call_for(vm);
        // The kubelet may have answered meanwhile.
        self.settle_resize(vm);
        Some(ended)
    }

    /// The watch has shown a VM's pod: requests that waited for that go on, and what is to be written is called for.
    pub(super) fn resize_seen(&self, pods: &[VmName]) {
        for vm in pods {
            if self.read().is_resized(vm) {
                if self.resize_due(vm).is_some() {
                    self.0.resizes.call_for(vm);
                }
                self.settle_resize(vm);
            }
        }
    }

    /// Whether the pod of this VM is resized before the VM grows.
    pub(super) fn is_resized(&self, vm: &VmName) -> bool {
        self.read().is_resized(vm)
    }

    /// Nothing is to come for this VM from its kubelet: requests go on.
    pub(super) fn settle_resize(&self, vm: &VmName) {
        if !self.read().waits_for_kubelet(vm) {
            self.0.waits.end(vm);
        }
    }

    /// Notes whether room came free on the node of a VM.
    fn noting_vm<T>(&self, vm: &VmName, act: impl FnOnce() -> T) -> T {
        let node = self.books_of(vm);
        let before = node.as_ref().map(|node| node.books.summary().free());
        let done = act();
        if let (Some(node), Some(before)) = (node, before)
            && !before.covers(node.books.summary().free())
        {
            self.note_freed(&node.name);
        }
        done
    }
}
