//! The objects of VMs whose pods belong to them: what the API server tells of these objects.

use super::ClusterBooks;
use crate::leadership::Epoch;
use windlass_plugin_core::pods::CeilingOn;
use windlass_plugin_core::pods::audit::{Audit, Looked, Page};
use windlass_protocol::VmName;
use windlass_protocol::pod::Ceiling;
use windlass_protocol::vm_object::VmObject;

// === impl ClusterBooks ===

impl ClusterBooks {
    /// These are the objects of VMs from here on; the list began in this epoch of the process.
    pub(crate) fn objects_listed_in(&self, epoch: u64, objects: Vec<VmObject>) {
        let freed = self.write().objects_listed(objects);
        self.note(freed);
        self.0.rebuild.objects_listed(epoch);
    }

    /// The watch shows the object of a VM.
    pub(crate) fn object_seen(&self, object: VmObject) {
        let freed = self.write().object_seen(object);
        self.note(freed);
    }

    /// The watch shows that the object of a VM is gone.
    pub(crate) fn object_gone(&self, name: &VmName, uid: &str) {
        let freed = self.write().object_gone(name, uid);
        self.note(freed);
    }

    /// The ceilings that keep pods from a place, by the pod, and the objects that have them.
    pub(crate) fn ceilings_to_fit(&self) -> Vec<(VmName, CeilingOn)> {
        if self.serves().is_err() {
            return Vec::new();
        }
        self.write().ceilings_to_fit(self.now())
    }

    /// What takes the place of the ceiling on this object, which was read just now.
    pub(crate) fn fitting_ceiling(
        &self,
        pod: &VmName,
        read: &VmObject,
        epoch: Epoch,
    ) -> Option<Ceiling> {
        self.read().fitting_ceiling(pod, read, epoch.0)
    }

    /// Compares objects of the API server with those that are known.
    pub(crate) fn audit_objects(
        &self,
        audit: &mut Audit<VmName>,
        page: Page<VmName>,
    ) -> Looked<VmName> {
        let pods = self.read();
        audit.look(page, pods.objects(), |name| pods.object_revision(name))
    }
}
