//! VMs whose pods are resized: what their pods are to request, and what became of that.
//!
//! [`Books::allotment_falls`] comes in one step with the check that no VM was promised what its pod gives up, before a
//! resize is sent.

use super::Books;
use crate::allotment::{Allotment, Allotted, Denied, Needed};
use crate::entry::Basis;
use std::sync::Arc;
use windlass_protocol::{Moment, Resources, VmName, VmRecord};

// === impl Books ===

impl Books {
    /// A VM's pod is on this node, and this much is allocated to the VM: its agent is told of no more. No less than `floor` is
    /// reserved. Until its agent speaks, the VM counts with `most`.
    pub fn enter_allotted(
        &mut self,
        vm: impl Into<Arc<VmName>>,
        record: VmRecord,
        floor: Resources,
        most: Resources,
        allotted: Allotted,
    ) {
        let vm = vm.into();
        let is_new = self.vms.get(&vm).is_none();
        self.have(&vm, record, Basis::Presumed(most));
        self.change(&vm, |entry| {
            (entry.record, entry.floor, entry.is_remote) = (record, floor, true);
            let begins = !is_new && entry.cover.allotment().is_none();
            entry.cover.allot(allotted);
            let Some(allotment) = entry.cover.allotment_mut() else { return };
            // Since its pod is resized, an earlier plugin has promised no more than the pod covers.
            if let Basis::Presumed(known) = &mut entry.basis {
                if begins {
                    allotment.had(*known);
                }
                *known = most.max(allotment.before());
            }
        });
    }

    /// What the pod of a VM is to cover; `None`: nothing is known of that, as no agent has asked.
    pub fn allotment_needed(&mut self, now: Moment, vm: &VmName) -> Option<Needed> {
        self.change(vm, |entry| entry.cover.forget(now));
        let entry = self.vms.get(vm)?;
        let may_grow = !entry.cover.allotment()?.rests(now);
        Some(Needed { size: entry.needed()?, least: entry.record.min, may_grow })
    }

    /// Whether the limits in force of the VM's container have been below what is allocated (`are_low`) for too long, while the VM
    /// needs more than they leave it.
    pub fn is_limited(&mut self, now: Moment, vm: &VmName, are_low: bool) -> bool {
        let mut is_limited = false;
        self.change(vm, |entry| {
            let needed = entry.needed().unwrap_or_default();
            let allotment = entry.cover.allotment_mut();
            is_limited = allotment.is_some_and(|it| it.is_limited(now, are_low, needed));
        });
        is_limited
    }

    /// The pod of this VM asks for `to` from here on, whether or not that takes effect. `false`: the VM was promised more of
    /// what its allocation covers, and nothing may be sent.
    pub fn allotment_falls(&mut self, vm: &VmName, to: Resources) -> bool {
        let mut is_free = false;
        self.change(vm, |entry| {
            let promised = entry.in_use();
            let allotment = entry.cover.allotment_mut();
            is_free = allotment.is_some_and(|allotment| allotment.falls(to, promised));
        });
        is_free
    }

    /// The pod of this VM is not resized. What was proposed is free, and the pod is not asked to grow for a while.
    pub fn allotment_refused(&mut self, now: Moment, vm: &VmName, why: Denied) {
        self.change(vm, |entry| {
            if let Some(allotment) = entry.cover.allotment_mut() {
                allotment.refuse(now, vm, why);
            }
        });
    }

    /// Whether a permit of this VM waits for its kubelet.
    pub fn waits_for_kubelet(&self, vm: &VmName) -> bool {
        let allotment = |vm| self.vms.get(vm)?.cover.allotment();
        allotment(vm).is_some_and(Allotment::is_waiting)
    }

    /// Why the pod of this VM was not resized last, if it has not grown since, and until when it is not asked to.
    pub fn resize_denied(&self, vm: &VmName) -> Option<(Denied, Moment)> {
        self.vms.get(vm)?.cover.allotment()?.denied()
    }
}
