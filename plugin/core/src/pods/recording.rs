//! The ceilings of VM pods: the pod that is meant, and its entry in the books of its node.

use crate::ceilings::{CeilingWrite, FirstCeiling};
use crate::cluster::Node;
use crate::pods::known::Known;
use crate::pods::{CeilingOn, Pods};
use windlass_protocol::VmName;
use windlass_protocol::pod::Pod;

// === impl Pods ===

impl<N: Node> Pods<N> {
    /// The ceiling that the binding of a pod records, which was placed; `None`: the pod is no VM, or its VM has an object of
    /// its own, where the ceiling belongs.
    pub fn first_ceiling(&self, pod: &Pod, epoch: u64) -> Option<FirstCeiling> {
        let vm = pod.vm.as_ref().filter(|vm| vm.object == pod.name)?;
        let size = self.node_of(&pod.name)?.with_books(|books| books.first_ceiling(&pod.name))?;
        let replaced = vm.ceiling;
        Some(FirstCeiling::new(epoch, size, replaced))
    }

    /// The API server has bound a pod with this ceiling.
    pub fn bound_with(&self, name: &VmName, uid: &str, first: FirstCeiling) {
        let is_same = self.pods.get(name).is_some_and(|known| known.uid == uid);
        if let Some(node) = self.node_of(name).filter(|_| is_same) {
            node.with_books(|books| books.ceiling_bound(name, first));
        }
    }

    /// The ceiling of a VM that is to be recorded in this epoch, and where. Where the VM's object is not known, or an
    /// earlier plugin may yet resize its pod, what was proposed is given up.
    pub fn ceiling_due(&self, vm: &VmName, epoch: u64) -> Option<(CeilingOn, CeilingWrite)> {
        let node = self.node_of(vm)?;
        // What a resize of an earlier plugin may take from its pod is known soon.
        let on =
            self.ceiling_on(vm).filter(|_| !self.pods.get(vm).is_some_and(Known::is_inherited));
        let Some(on) = on else {
            node.with_books(|books| books.ceiling_given_up(vm));
            return None;
        };
        let write = node.with_books(|books| books.ceiling_due(vm, epoch))?;
        Some((on, write))
    }
}
